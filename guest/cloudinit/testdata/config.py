# Applies cloud-configs as the modules of Debian's cloud-init do, each to the root as it is now. Standard
# input is a JSON list of cloud-configs; standard output is the list of the files and homes that each
# changes: "MODE OWNER:GROUP TEXT" by path, null for one that is removed. A module that fails ends alone,
# as in a boot.
import base64
import copy
import grp
import importlib
import json
import logging
import os
import pwd
import shutil
import stat
import sys

from cloudinit import cloud, distros, helpers, sources, ssh_util, util

logging.disable(logging.CRITICAL)

# What Debian's /etc/cloud/cloud.cfg has.
SYSTEM = {
    "distro": "debian",
    "default_user": {
        "name": "debian", "lock_passwd": True, "gecos": "Debian", "shell": "/bin/bash", "sudo": ["ALL=(ALL) NOPASSWD:ALL"],
        "groups": ["adm", "audio", "cdrom", "dialout", "dip", "floppy", "netdev", "plugdev", "sudo", "video"],
    },
}
BASE = {"users": ["default"], "disable_root": True, "preserve_hostname": False, "system_info": SYSTEM}
MODULES = ["write_files", "set_hostname", "update_hostname", "update_etc_hosts", "users_groups", "keys", "locale", "set_passwords", "timezone", "write_files_deferred"]
PLACES = ["etc", "home", "root", "srv", "opt", "var/lib/x"]
LEFT_OUT = {"etc/.pwd.lock"}


class Source(sources.DataSource):
    dsname = "NoCloud"

    def __init__(self, cfg, distro, paths):
        super().__init__(cfg, distro, paths)
        self.metadata = {"local-hostname": "node-7", "instance-id": "i-1"}

    def get_public_ssh_keys(self):
        return []


def snapshot():
    out = {}
    for place in PLACES:
        for at, dirs, files in os.walk("/" + place):
            for name in files:
                add(out, os.path.join(at, name))
            if at != "/" + place:
                add(out, at)
    return out


def add(out, name):
    st = os.lstat(name)
    if name[1:] in LEFT_OUT or name.endswith("-") and os.path.dirname(name) == "/etc":
        return
    content = b""
    if stat.S_ISREG(st.st_mode):
        with open(name, "rb") as f:
            content = f.read()
    elif stat.S_ISLNK(st.st_mode):
        content = os.readlink(name).encode()
    out[name[1:]] = (st.st_mode, st.st_uid, st.st_gid, content)


def show(entry):
    mode, uid, gid, content = entry
    try:
        owner = pwd.getpwuid(uid).pw_name
    except KeyError:
        owner = str(uid)
    try:
        group = grp.getgrgid(gid).gr_name
    except KeyError:
        group = str(gid)
    kind = "d" if stat.S_ISDIR(mode) else "l" if stat.S_ISLNK(mode) else ""
    return "%s%04o %s:%s %s" % (kind, stat.S_IMODE(mode), owner, group, base64.b64encode(content).decode())


def restore(before):
    now = snapshot()
    for name in sorted(set(now) - set(before), reverse=True):
        path = "/" + name
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.unlink(path)
    for name, (mode, uid, gid, content) in sorted(before.items()):
        if now.get(name) == before[name]:
            continue
        path = "/" + name
        if stat.S_ISDIR(mode):
            os.makedirs(path, exist_ok=True)
        elif stat.S_ISLNK(mode):
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(content, path)
            continue
        else:
            with open(path, "wb") as f:
                f.write(content)
        os.chown(path, uid, gid)
        os.chmod(path, stat.S_IMODE(mode))


def keys(cfg, c):
    (users, _groups) = distros.ug_util.normalize_users_groups(cfg, c.distro)
    (user, _config) = distros.ug_util.extract_default(users)
    # as cc_ssh.handle does after the keys of the host
    from cloudinit.config import cc_ssh

    all_keys = []
    if "ssh_authorized_keys" in cfg:
        all_keys.extend(cfg["ssh_authorized_keys"])
    cc_ssh.apply_credentials(
        all_keys, user, util.get_cfg_option_bool(cfg, "disable_root", True), util.get_cfg_option_str(cfg, "disable_root_opts", ssh_util.DISABLE_USER_OPTS)
    )


def apply(text):
    cfg = util.mergemanydict([util.load_yaml(text, default={}), copy.deepcopy(BASE)])
    shutil.rmtree("/var/lib/cloud", ignore_errors=True)
    paths = helpers.Paths({"cloud_dir": "/var/lib/cloud", "templates_dir": "/etc/cloud/templates", "run_dir": "/run/cloud-init"})
    os.makedirs("/var/lib/cloud/data", exist_ok=True)
    distro = distros.fetch("debian")("debian", copy.deepcopy(SYSTEM), paths)
    distro.manage_service = lambda action, service: None  # sshd is installed
    c = cloud.Cloud(Source(cfg, distro, paths), paths, cfg, distro, helpers.Runners(paths))
    for name in MODULES:
        try:
            if name == "keys":
                keys(cfg, c)
                continue
            importlib.import_module("cloudinit.config.cc_" + name).handle(name, cfg, c, logging.getLogger(), [])
        except Exception as e:
            print(name, repr(e), file=sys.stderr)


os.makedirs("/var/lib/x", exist_ok=True)
before = snapshot()
answer = []
for text in json.load(sys.stdin):
    print("==", repr(text)[:200], file=sys.stderr)
    apply(text)
    now = snapshot()
    changed = {}
    for name in set(before) | set(now):
        if name not in now:
            changed[name] = None
        elif now[name] != before.get(name):
            changed[name] = show(now[name])
    answer.append(changed)
    restore(before)
json.dump(answer, sys.stdout)
