"""The durable record, one noun a file."""

from checkpoint.models.api_token import ApiToken, Scope
from checkpoint.models.approval import Approval
from checkpoint.models.artifact import Artifact
from checkpoint.models.attempt import Attempt, Ending
from checkpoint.models.audit import AuditEntry, AuditStream
from checkpoint.models.audit_anchor import AnchoredHead, AuditAnchor
from checkpoint.models.case import Case
from checkpoint.models.evidence import Evidence, EvidenceKind
from checkpoint.models.intent import Intent
from checkpoint.models.kept_reply import KeptReply
from checkpoint.models.limit import Limit
from checkpoint.models.policy_version import PolicyVersion
from checkpoint.models.request_rate import RequestRate
from checkpoint.models.resume_packet import ResumePacket
from checkpoint.models.step import Activity, Step
from checkpoint.models.stored_bytes import LoosePath, StoredBytes
from checkpoint.models.team import Team
from checkpoint.models.tool_version import ToolVersion
from checkpoint.models.waiver import Waiver, WaiverCause
from checkpoint.models.worker_process import WorkerProcess
from checkpoint.models.workflow import Workflow

__all__ = [
    "Activity",
    "AnchoredHead",
    "ApiToken",
    "Approval",
    "Artifact",
    "Attempt",
    "AuditAnchor",
    "AuditEntry",
    "AuditStream",
    "Case",
    "Ending",
    "Evidence",
    "EvidenceKind",
    "Intent",
    "KeptReply",
    "Limit",
    "LoosePath",
    "PolicyVersion",
    "RequestRate",
    "ResumePacket",
    "Scope",
    "Step",
    "StoredBytes",
    "Team",
    "ToolVersion",
    "Waiver",
    "WaiverCause",
    "WorkerProcess",
    "Workflow",
]
