"""Manages servers with sushy, as it is told line by line.

A line of the input is a list in JSON: an operation and its arguments; a line of
the output {"result": …} or {"error": …}.
"""
import json
import os
import sys

import requests
import sushy
from sushy import auth, exceptions
from sushy.resources.manager import virtual_media

# Debian's package lacks the registries that sushy brings along, and fails when it
# looks for them: it has those of the BMC.
sushy.main.Sushy._get_standard_message_registry_collection = lambda self: []

# Debian's package passes Retry-After, which is a text, to sleep. Nothing here
# waits for a task: time is the test's.

bmc = None
slot = None


def open_(url, user, password, ca):
    global bmc, slot
    slot = None
    os.environ["REQUESTS_CA_BUNDLE"] = ca  # which requests lets win over what it is told
    session = requests.Session()  # that registries are fetched with
    bmc = sushy.Sushy(url, verify=ca, auth=auth.BasicAuth(user, password), public_connector=session)


def system():
    return bmc.get_system()


def inventory():
    s = system()
    drives = 0
    for store in s.storage.get_members():
        drives += len(store.drives)
    nics = len(s.ethernet_interfaces.get_members())
    return {"Serials": [s.serial_number or "", s.sku or ""], "Power": s.power_state.value, "Drives": drives, "NICs": nics}


def reset(kind):
    system().reset_system(sushy.ResetType(kind))


def boot(target, mode):
    system().set_system_boot_options(
        target=sushy.BootSource(target), enabled=sushy.BootSourceOverrideEnabled.ONCE,
        mode=sushy.BootSourceOverrideMode(mode) if mode else None)


def slots():
    """The slots of the system, as later versions of sushy find them, or else of
    its manager; as ironic has it, of any if the system does not say which."""
    s = system()
    at = s.json.get("VirtualMedia", {}).get("@odata.id")
    if at:
        return virtual_media.VirtualMediaCollection(s._conn, at, root=bmc).get_members()
    try:
        managers = s.managers
    except exceptions.MissingAttributeError:
        managers = bmc.get_manager_collection().get_members()
    return [m for manager in managers for m in manager.virtual_media.get_members()]


def insert(image):
    global slot
    failed = LookupError("there is no slot for a CD")
    for m in slots():
        if not {sushy.VirtualMediaType.CD, sushy.VirtualMediaType.DVD} & set(m.media_types):
            continue
        try:
            m.insert_media(image)
            slot = m
            return
        except exceptions.SushyError as e:
            failed = e
    raise failed


def eject():
    slot.refresh()
    slot.eject_media()


def settings():
    return system().bios.attributes


def set_(name, value, when):
    system().bios.set_attribute(name, value, apply_time=sushy.ApplyTime(when) if when else None)


def store():
    for s in system().storage.get_members():
        of = s.json
        controllers = list(of.get("StorageControllers", []))
        if "Controllers" in of:  # which this version does not read the RAID types of
            controllers += [c.json for c in s.controllers.get_members()]
        if len(s.drives) > 1 and any("RAID1" in c.get("SupportedRAIDTypes", []) for c in controllers):
            return s
    raise LookupError("no subsystem makes mirrors")


def mirror(name):
    s = store()
    kinds = {}
    for d in s.drives:
        kinds.setdefault((d.media_type, d.protocol, d.capacity_bytes), []).append(d.path)
    pair = next(k for k in kinds.values() if len(k) > 1)[:2]
    s.volumes.create({"Name": name, "RAIDType": "RAID1", "Links": {"Drives": [{"@odata.id": d} for d in pair]}})


def unmake():
    all_ = store().volumes.get_members()
    if not all_:
        raise LookupError("there are no volumes")
    for v in all_:
        v.delete()


def raw(method, uri, body):
    c = bmc._conn
    if method == "GET":
        return c.get(uri).json()
    if method == "PATCH":
        c.patch(uri, data=body, etag=c.get(uri).headers.get("ETag"))
    elif method == "POST":
        c.post(uri, data=body)
    else:
        c.delete(uri)


does = {
    "open": open_, "inventory": inventory, "reset": reset, "boot": boot, "insert": insert, "eject": eject, "settings": settings, "set": set_,
    "mirror": mirror, "unmake": unmake, "raw": raw,
}

for line in sys.stdin:
    operation, *arguments = json.loads(line)
    try:
        answer = {"result": does[operation](*arguments)}
    except Exception as e:
        answer = {"error": f"{type(e).__name__}: {e} {getattr(e, 'status_code', '')}"}
    print(json.dumps(answer), flush=True)
