# Reads network data as Debian's cloud-init does, and compares what it gives to netplan with what
# is given. Standard input is JSON: cases with the name, the source, the text, the NICs by their MAC
# addresses, and the text of netplan's file, or null. Standard output is a JSON list of differences.
import json
import logging
import sys
from unittest import mock

import yaml

from cloudinit import net, stages, util
from cloudinit.distros.networking import LinuxNetworking
from cloudinit.net import netplan
from cloudinit.net.network_state import parse_net_config_data
from cloudinit.sources.helpers import openstack

logging.disable(logging.CRITICAL)

# What netplan 0.106 of Debian 12 has that the renderer asks for.
RENDERER = netplan.Renderer({"features": ["ipv6-mtu", "default-routes"]})


def configuration(case):
    """The configuration of either version: DataSourceConfigDrive and DataSourceNoCloud."""
    if case["source"] == "NoCloud":
        return util.load_yaml(case["text"])
    return openstack.convert_net_json(util.load_json(case["text"], root_types=(dict, list, str)))


def read(case):
    """What stages.Init.apply_network_config writes, parsed; None where it writes nothing."""
    with mock.patch.multiple(
        net,
        get_interfaces_by_mac=lambda *_, **__: dict(case["nics"]),
        get_ib_hwaddrs_by_interface=dict,
        device_driver=lambda _: None,
        device_devid=lambda _: None,
    ), mock.patch.object(LinuxNetworking, "settle", lambda *_, **__: None):
        try:
            config = stages.Init._remove_top_level_network_key(None, configuration(case))
            if net.is_disabled_cfg(config) or not config:
                return None, "no configuration"
            LinuxNetworking().wait_for_physdevs(config)
            state = parse_net_config_data(config, renderer=RENDERER)
            return yaml.safe_load(RENDERER._render_content(state)), ""
        except Exception as e:  # cloud-init's own tracebacks: it writes nothing
            return None, repr(e)


out = []
for case in json.load(sys.stdin):
    want, why = read(case)
    got = None if case["netplan"] is None else yaml.safe_load(case["netplan"])
    if want != got:
        out.append({"name": case["name"], "want": repr(want), "got": repr(got), "why": why})
json.dump(out, sys.stdout)
