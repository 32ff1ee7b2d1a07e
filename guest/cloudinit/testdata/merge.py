# Merges cloud-configs as Debian's cloud-init does. Standard input is a JSON list of cases: parts of user
# data, each a text and its header Merge-Type, and the vendor data's cloud-config. Standard output is the
# list of what they are together.
import json
import logging
import sys
import tempfile

from cloudinit import helpers, util
from cloudinit.handlers.cloud_config import CloudConfigPartHandler

logging.disable(logging.CRITICAL)


def merged(parts):
    handler = CloudConfigPartHandler(helpers.Paths({"cloud_dir": tempfile.gettempdir()}))
    for text, header in parts:
        handler.handle_part(None, "text/cloud-config", "part", text, None, {"Merge-Type": header})
    return handler.cloud_buf


out = []
for case in json.load(sys.stdin):
    out.append(util.mergemanydict([merged(case["parts"]), merged([[case["vendor"], ""]])]))
json.dump(out, sys.stdout)
