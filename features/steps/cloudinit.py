# Reads a config drive by the modules of Debian's cloud-init, and prints what they find.
# Argument: the directory with the files of the drive.
import json
import sys

from cloudinit import util
from cloudinit.sources import DataSourceHostname
from cloudinit.sources.helpers import openstack

found = openstack.ConfigDriveReader(sys.argv[1]).read_v2()


class Cloud:
    """What cc_set_hostname asks where the user data name no host."""

    def get_hostname(self, fqdn=False, metadata_only=False):
        return DataSourceHostname(found["metadata"]["local-hostname"], False)


print(json.dumps({
    "hostname": util.get_hostname_fqdn(util.load_yaml(found["userdata"]), Cloud())[0],
    "instance": found["metadata"]["instance-id"],
    "links": [link["ethernet_mac_address"] for link in (found.get("networkdata") or {}).get("links", [])],
}))
