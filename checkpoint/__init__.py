"""What is true. Imports nothing of `approvals` and `workers`.

The nouns (DESIGN.md section 1, one file each in `models/`): a Workflow is one long task of one agent; its Steps are
intended effects, each with one idempotency key that an Intent holds for ever. An Attempt is one try at executing a
step, made under a lease and a fence that only rises. Evidence is one fact with its source, time and standing. A Case is
a question to a person, an Approval permission given before the start. Every change is an AuditEntry in a hash chain.

The states and their arrows are data in `states.py`. Python checks them for the message, PostgreSQL (`laws/`) for the
truth.

What is true after a crash, by what the journal says of a step:

    planned, prepared   nothing left this system: prepare, or execute with the stored key
    started, leased     another worker has it: nothing
    started, not leased the effect may have happened: look it up, send again where the key is honoured, or ask
    committed           it happened, perhaps not visibly: verify
    verified            done: the next position may run
    failed              it did not happen: try again if policy and budget allow, else ask
    uncertain           a person is asked: nothing until a decision, or until evidence settles it

and by where the process died:

    before a turn's commit      nothing of that turn happened; its reports are lost and its calls are looked up
    after a turn's commit       all of it happened; the calls that it claimed were, or were not, made
    in a call                   between its first byte and its answer only the outside knows; before and after that
                                the flight recorder of the dead process knows, unless the machine died with it
    before a verb's commit      nothing of a decision, submission or answer happened
    after a verb's commit       it happened; a lost doorbell is made good by the sweeper within a second

Who does what (the contract's own modules lie here, what serves them in packages):

    submitting      planning/ reads and checks, canonical gives the one text  ->  workflows, appending, edits
    working         journal.take_turn, by turns/: recording (what came back), claiming (what may run next)
    asking first    gates/: policy, permission, drift, limits, time; before a step starts
    thinking        decide (after a crash), gates/gating (before a start), states.workflow_status: pure, no framework
    writing         transitions.Changes, the sole writer of states; fencing, of leases; audit, of the trail
    sets            rows/: one module a table, over statements; laws/: the same rules as triggers
    people          recovery (what an answer does), explaining/ (what is said), trail/ (the audit read back)
    agents          agents/: steps that they carry out; resume_packets, from packets/; events/ to follow
    living          leases, turns/live_workers: death is noticed by session locks, leases end by database time;
                    turns/flight_records: what the dead had noted of their calls

Every public verb opens one transaction; every helper that writes demands one; pages, commands and tasks open none.
Locks are taken in one order: workflows by id, intents, steps, approvals, cases, limits by tool.
"""
