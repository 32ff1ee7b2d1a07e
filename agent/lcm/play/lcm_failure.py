"""A callback of Ansible beside the one that prints: it writes the failure that has ended a play
to failure.json in its own directory. Results of tasks with no_log are hidden before they come here.
"""

import json
import os

from ansible.plugins.callback import CallbackBase

LIMIT = 64 << 10  # characters of a text


def text(value):
    """Return a value as text; "" for None."""
    if value is None:
        return ""
    return (value if isinstance(value, str) else json.dumps(value, default=str))[:LIMIT]


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "lcm_failure"

    def __init__(self):
        super().__init__()
        self.failure = None

    def record(self, result):
        """Keep a failure. That of a loop is its first item's."""
        # ansible-core 2.19 has task and result, older ones _task and _result.
        task = getattr(result, "task", None) or result._task
        found = getattr(result, "result", None) or result._result
        item, more = "", 0
        items = [r for r in found.get("results") or [] if isinstance(r, dict) and (r.get("failed") or r.get("unreachable"))]
        if items:
            found, more = items[0], len(items) - 1
            item = text(self._get_item_label(found))
        message = found.get("msg") or found.get("censored") or found.get("reason") or "it has no message"
        stderr = found.get("stderr") or found.get("module_stderr")
        self.failure = {"task": text(task.get_name()), "item": item, "more": more, "message": text(message), "stderr": text(stderr)}

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if not ignore_errors:
            self.record(result)

    def v2_runner_on_unreachable(self, result):
        task = getattr(result, "task", None) or result._task
        if not task.ignore_unreachable:
            self.record(result)

    def v2_playbook_on_stats(self, stats):
        # It is not called where Ansible gives up with an ERROR!: the last failure was rescued then.
        if self.failure is None:
            return
        with open(os.path.join(os.path.dirname(__file__), "failure.json"), "w", encoding="utf-8") as f:
            json.dump(self.failure, f)
