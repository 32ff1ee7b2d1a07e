"""Runs redfishtool again and again in one process.

Each line of the input is the arguments of a run, in JSON; each line of the
output what it has printed and its exit status. It is redfishtool's own entry
point that is called, as its script calls it: only that Python, which takes
longer to start than a run does, is started once.
"""
import contextlib
import io
import json
import os
import sys
import traceback

import redfishtoollib

# It verifies no certificate, and still reads all authorities that the machine
# trusts, for each request.
os.environ["SSL_CERT_FILE"] = os.environ["SSL_CERT_DIR"] = os.devnull

for line in sys.stdin:
    printed, status = io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            redfishtoollib.main(["redfishtool", *json.loads(line)])
        except SystemExit as ended:
            status = ended.code or 0
        except Exception:
            traceback.print_exc()
            status = 1
    print(json.dumps({"printed": printed.getvalue(), "status": status}), flush=True)
