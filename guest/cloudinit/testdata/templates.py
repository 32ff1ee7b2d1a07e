# Renders templates as Debian's cloud-init does. Standard input is JSON: the instance data, and the
# templates by their names. Standard output is JSON: their texts, null where cloud-init loses the part.
import json
import logging
import sys

from cloudinit.handlers.jinja_template import render_jinja_payload

logging.disable(logging.CRITICAL)

question = json.load(sys.stdin)
out = {}
for name, text in question["templates"].items():
    try:
        out[name] = render_jinja_payload(text, name, question["data"])
    except Exception:  # the part's handler logs it
        out[name] = None
json.dump(out, sys.stdout)
