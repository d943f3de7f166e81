"""What the head of every page says."""

from __future__ import annotations

from django import template

from checkpoint.permissions import Person
from checkpoint.queries import COUNT_LIMIT, open_question_count

register = template.Library()


@register.simple_tag
def open_questions(person: Person) -> str:
    """The number of open questions; "99+" where there are more than one can count at a glance."""
    count = open_question_count(person)
    return f"{COUNT_LIMIT - 1}+" if count >= COUNT_LIMIT else str(count)
