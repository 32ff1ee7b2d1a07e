# Splits user data into parts as Debian's cloud-init does. Standard input is a JSON list of user data in
# base64, each with the launch-index of the server or null; standard output is the list of their parts, each the name, the type and the content in base64,
# or null where cloud-init fails.
import base64
import json
import logging
import sys
import tempfile

from cloudinit import handlers, helpers, user_data, util
from cloudinit.filters import launch_index

logging.disable(logging.CRITICAL)


def split(data, launch):
    processor = user_data.UserDataProcessor(helpers.Paths({"cloud_dir": tempfile.gettempdir()}))
    out = []

    def part(_data, name, payload, headers):
        if isinstance(payload, str):
            payload = payload.encode("utf-8", "surrogateescape")
        out.append([name, headers["Content-Type"], base64.b64encode(payload or b"").decode()])

    handlers.walk(launch_index.Filter(util.safe_int(launch)).apply(processor.process(data)), part, None)
    return out


answer = []
for text, launch in json.load(sys.stdin):
    try:
        answer.append(split(base64.b64decode(text), launch))
    except Exception:  # all user data are lost
        answer.append(None)
json.dump(answer, sys.stdout)
