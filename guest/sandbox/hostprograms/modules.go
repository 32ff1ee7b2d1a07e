package hostprograms

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Kernel is the state of a boot's kernel that programs have set. The zero value is that of a boot that begins. It
// is safe for concurrent use.
type Kernel struct {
	mu      sync.Mutex
	modules []string // those that are loaded, the last first, with "_" for "-"
	rules   audit
}

// Modules returns the names of the modules that are loaded, the last first.
func (k *Kernel) Modules() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.modules)
}

// Has reports whether a module is loaded.
func (k *Kernel) Has(module string) bool { return slices.Contains(k.Modules(), moduleName(module)) }

// maxModules is how many modules a server loads.
const maxModules = 1024

// Load adds a module, and reports whether it was not there.
func (k *Kernel) Load(module string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	module = moduleName(module)
	if slices.Contains(k.modules, module) || len(k.modules) == maxModules {
		return false
	}
	k.modules = slices.Insert(k.modules, 0, module)
	return true
}

func (k *Kernel) unload(module string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.Index(k.modules, moduleName(module))
	if i < 0 {
		return false
	}
	k.modules = slices.Delete(k.modules, i, i+1)
	return true
}

// ProcModules returns what /proc/modules shows (proc_modules(5)).
func (k *Kernel) ProcModules() string {
	var b strings.Builder
	for _, m := range k.Modules() {
		fmt.Fprintf(&b, "%s %d 0 - Live 0x0000000000000000\n", m, moduleSize(m))
	}
	return b.String()
}

// moduleSize is some size in bytes, the same each time.
func moduleSize(name string) int { return 16384 + 4096*(len(name)%8) }

// moduleName is a module's name as the kernel has it (modprobe(8)).
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// ModulesOf returns the names in a text of modules-load.d(5).
func ModulesOf(text string) (out []string) {
	for _, words := range lines(text) {
		out = append(out, words[0])
	}
	return out
}

// usual are modules that a kernel of Debian or Ubuntu has. They count where the server's /lib/modules
// has no list of its own.
const usual = `8021q aesni_intel af_packet ahci algif_hash arp_tables arptable_filter ata_piix atlantic authenc autofs4 be2net bnx2 bnx2x bnxt_en bonding br_netfilter bridge
btrfs ccm cdrom ceph cifs cramfs crc32c_intel cryptd cuse dca dccp dm_cache dm_crypt dm_log dm_mirror dm_mod dm_multipath dm_raid dm_round_robin dm_snapshot dm_thin_pool dm_writecache
drbd dummy e1000 e1000e ebtable_filter ebtables edac_core efi_pstore efivarfs esp4 esp6 exfat ext4 failover fat fcoe floppy freevxfs fscache fuse geneve gfs2 hfs hfsplus hid hid_generic
hpsa hv_netvsc hv_storvsc hv_vmbus i2c_dev i2c_i801 i40e i40iw iavf ib_core ib_iser ib_ipoib ib_umad ib_uverbs ice ifb igb igc iommufd ip6_tables ip6_tunnel ip6_udp_tunnel
ip6t_REJECT ip6t_rpfilter ip6table_filter ip6table_mangle ip6table_nat ip6table_raw ip_gre ip_set ip_set_hash_ip ip_set_hash_ipport ip_set_hash_net ip_tables ip_tunnel ip_vs ip_vs_dh ip_vs_lc
ip_vs_lblc ip_vs_rr ip_vs_sed ip_vs_sh ip_vs_wlc ip_vs_wrr ipip ipmi_devintf ipmi_msghandler ipmi_poweroff ipmi_si ipmi_ssif ipmi_watchdog ipt_REJECT iptable_filter iptable_mangle
iptable_nat iptable_raw ipvlan ipvtap irqbypass iscsi_ibft iscsi_tcp isofs iTCO_wdt ixgbe ixgbevf jbd2 jffs2 joydev kvm kvm_amd kvm_intel l2tp_core libahci libata libcrc32c libiscsi
libnvdimm loop lp lockd macsec macvlan macvtap mbcache md_mod megaraid_sas mlx4_core mlx4_en mlx5_core mlx5_ib mpi3mr mpls_iptunnel mpls_router mpt3sas msdos nbd nf_conncount
nf_conntrack nf_conntrack_ftp nf_conntrack_ipv4 nf_conntrack_ipv6 nf_conntrack_netlink nf_defrag_ipv4 nf_defrag_ipv6 nf_flow_table nf_log_syslog nf_nat nf_nat_ftp nf_reject_ipv4 nf_reject_ipv6 nf_tables nfnetlink nfnetlink_log nfs
nfs_acl nfsd nfsv3 nfsv4 nft_chain_nat nft_compat nft_counter nft_ct nft_log nft_masq nft_nat nft_reject nls_iso8859_1 null_blk nvme nvme_core nvme_fabrics nvme_rdma nvme_tcp nvmet
nvmet_tcp ntfs3 openvswitch overlay parport pci_stub pcspkr ppp_generic pppoe pps_core psample psmouse ptp qede qla2xxx quota_v2 raid0 raid1 raid10 raid456 raid6_pq rbd rdma_cm rds rpcrdma
sch_cake sch_fq sch_fq_codel sch_htb sch_ingress sch_tbf scsi_dh_alua scsi_dh_emc scsi_dh_rdac scsi_mod scsi_transport_iscsi sctp sd_mod ses sfc sg sit smartpqi softdog squashfs sr_mod sunrpc
target_core_mod tap tcp_bbr tcp_htcp team team_mode_loadbalance tipc tls tpm_crb tpm_tis tun tunnel4 tunnel6 udf udp_tunnel uio uio_pci_generic usb_storage usbcore usbhid uas veth
vfat vfio vfio_iommu_type1 vfio_pci vhost vhost_net vhost_vsock vhost_scsi virtio virtio_balloon virtio_blk virtio_console virtio_net virtio_pci virtio_rng virtio_scsi vmw_pvscsi vmxnet3 vrf vsock vxlan watchdog
wireguard x_tables xfrm_user xfs xhci_hcd xhci_pci xor xt_CT xt_LOG xt_MASQUERADE xt_REDIRECT xt_TPROXY xt_addrtype xt_comment xt_connmark xt_conntrack xt_limit xt_mac xt_mark xt_multiport xt_nat
xt_physdev xt_recent xt_set xt_socket xt_state xt_statistic xt_tcpudp z3fold zfs zram zsmalloc`

var usualModules = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for name := range strings.FieldsSeq(usual) {
		out[moduleName(name)] = "kernel/" + name + ".ko"
	}
	return out
})

// moduleFiles returns the files of all modules, relative to /lib/modules/RELEASE, by their names.
func (c *Call) moduleFiles() map[string]string {
	releases, err := c.ReadDir("/lib/modules")
	if err != nil {
		return usualModules()
	}
	out := map[string]string{}
	for _, r := range releases {
		for line := range strings.Lines(c.text("/lib/modules/" + r + "/modules.dep")) { // modules.dep(5)
			if file, _, ok := strings.Cut(line, ":"); ok {
				name, _, _ := strings.Cut(path.Base(file), ".ko")
				out[moduleName(name)] = file
			}
		}
	}
	if len(out) == 0 {
		return usualModules()
	}
	return out
}

// modprobeConfig is the configuration of /etc/modprobe.d (modprobe.d(5)). options, softdep and remove have no
// effect here: a module has no parameters and needs no other.
type modprobeConfig struct {
	aliases   [][2]string
	installs  map[string]string
	blacklist map[string]bool
}

func (c *Call) modprobeConfig() modprobeConfig {
	out := modprobeConfig{installs: map[string]string{}, blacklist: map[string]bool{}}
	for _, file := range c.configFiles(".conf", "/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/lib/modprobe.d") {
		for _, w := range lines(strings.ReplaceAll(c.text(file), "\\\n", " ")) {
			switch {
			case len(w) > 2 && w[0] == "alias":
				out.aliases = append(out.aliases, [2]string{moduleName(w[1]), moduleName(w[2])})
			case len(w) > 2 && w[0] == "install":
				out.installs[moduleName(w[1])] = strings.Join(w[2:], " ")
			case len(w) > 1 && w[0] == "blacklist":
				out.blacklist[moduleName(w[1])] = true
			}
		}
	}
	return out
}

// resolve returns the module that a name or alias means; "": none.
func (m modprobeConfig) resolve(name string, files map[string]string) string {
	name = moduleName(name)
	if files[name] != "" || m.installs[name] != "" {
		return name
	}
	for _, a := range m.aliases {
		if ok, _ := path.Match(a[0], name); ok && (files[a[1]] != "" || m.installs[a[1]] != "") {
			return a[1]
		}
	}
	return ""
}

var modprobeOptions = map[string]string{
	"-a": "all", "--all": "all", "-r": "remove", "--remove": "remove", "-n": "dry", "--dry-run": "dry", "--show": "dry", "-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose",
	"-b": "blacklist", "--use-blacklist": "blacklist", "-i": "ignore-install", "--ignore-install": "ignore-install", "--ignore-remove": "ignore-install", "--first-time": "first", "-f": "force", "--force": "force",
	"--force-vermagic": "force", "--force-modversion": "force", "-s": "syslog", "--syslog": "syslog", "--remove-dependencies": "holders", "--remove-holders": "holders", "-w": "wait=", "--wait": "wait=",
	"-D": "depends", "--show-depends": "depends", "-R": "aliases", "--resolve-alias": "aliases", "-V": "version", "--version": "version", "-h": "help", "--help": "help",
	"-c": "config", "--showconfig": "config", "--show-config": "config", "-d": "dirname=", "--dirname": "dirname=", "-C": "file=", "--config": "file=", "-S": "release=", "--set-version": "release=",
	"--dump-modversions": "modversions", "--show-modversions": "modversions", "--show-exports": "modversions",
}

// modprobe loads and removes modules (modprobe(8)).
func modprobe(c *Call) int {
	o, err := parse(c.Args, modprobeOptions, false)
	switch {
	case err != nil:
		return c.complain("modprobe: %v", err)
	case o.has("version"):
		c.print("kmod version 30 (metalab)\n")
		return 0
	case o.has("help"):
		c.print("Usage:\n\tmodprobe [options] [-i] [-b] modulename\n\tmodprobe [options] -a [-i] [-b] modulename [modulename...]\n\tmodprobe [options] -r [-i] modulename\n")
		return 0
	}
	for _, not := range []string{"config", "dirname", "file", "release", "modversions"} {
		if o.has(not) {
			return c.complain("modprobe: FATAL: this option is not done here: a server of the lab has one kernel, and the files of /etc/modprobe.d")
		}
	}
	names := o.words
	if len(names) == 0 {
		return c.complain("modprobe: ERROR: missing parameters. See -h.")
	}
	if !o.has("all") && !o.has("remove") {
		names = names[:1] // parameters follow, which a module here has not
	}
	files, config := c.moduleFiles(), c.modprobeConfig()
	code, changed := 0, false
	for _, name := range names {
		did, failed := c.modprobeOne(o, name, files, config)
		changed = changed || did
		if failed {
			code = 1
			if !o.has("all") {
				break
			}
		}
	}
	if changed {
		if err := c.Changed(); err != nil {
			return c.complain("modprobe: ERROR: %v", err)
		}
	}
	return code
}

// modprobeOne does one name of modprobe's.
func (c *Call) modprobeOne(o options, name string, files map[string]string, config modprobeConfig) (changed, failed bool) {
	complain := func(format string, args ...any) {
		if !o.has("quiet") {
			c.complain("modprobe: "+format, args...)
		}
	}
	module := config.resolve(name, files)
	switch {
	case module == "" && o.has("remove"):
		complain("FATAL: Module %s not found.", name)
		return false, true
	case module == "":
		complain("FATAL: Module %s not found in directory /lib/modules/%s", name, c.Release)
		return false, true
	case o.has("aliases"):
		c.print("%s\n", module)
		return false, false
	case config.blacklist[module] && o.has("blacklist"):
		return false, false
	}
	file, dry, loaded := path.Join("/lib/modules", c.Release, files[module]), o.has("dry") || o.has("depends"), c.Kernel.Has(module)
	if command := config.installs[module]; command != "" && !o.has("ignore-install") && !o.has("remove") && !loaded {
		if o.has("verbose") || o.has("depends") {
			c.print("install %s \n", command)
		}
		switch command = path.Base(command); {
		case dry, command == "true", command == ":":
			return false, false
		case command == "false":
			complain("ERROR: Error running install command '%s' for module %s: retcode 1", config.installs[module], module)
			complain("ERROR: could not insert '%s': Invalid argument", module)
		default:
			complain("ERROR: install command '%s' for module %s: only /bin/true and /bin/false are done here", config.installs[module], module)
		}
		return false, true
	}
	switch verbose := o.has("verbose"); {
	case o.has("depends"):
		c.print("insmod %s \n", file)
		return false, false
	case o.has("remove") && !loaded:
		if o.has("first") {
			complain("FATAL: Module %s is not in kernel.", name)
		}
		return false, o.has("first")
	case !o.has("remove") && loaded:
		if o.has("first") {
			complain("ERROR: could not insert '%s': Module already in kernel", name)
		}
		return false, o.has("first")
	case verbose && o.has("remove"):
		c.print("rmmod %s\n", module)
	case verbose:
		c.print("insmod %s \n", file)
	}
	switch {
	case dry:
		return false, false
	case !c.mayChange() && o.has("remove"):
		complain("ERROR: could not remove '%s': Operation not permitted", name)
		return false, true
	case !c.mayChange():
		complain("ERROR: could not insert '%s': Operation not permitted", name)
		return false, true
	case o.has("remove"):
		return c.Kernel.unload(module), false
	}
	return c.Kernel.Load(module), false
}

// rmmod removes modules (rmmod(8)).
func rmmod(c *Call) int {
	o, err := parse(c.Args, map[string]string{"-f": "force", "--force": "force", "-s": "syslog", "--syslog": "syslog", "-v": "verbose", "--verbose": "verbose", "-w": "wait"}, false)
	switch {
	case err != nil:
		return c.complain("rmmod: %v", err)
	case len(o.words) == 0:
		return c.complain("rmmod: ERROR: missing module name.")
	}
	code := 0
	for _, name := range o.words {
		module, _, _ := strings.Cut(path.Base(name), ".ko")
		switch {
		case !c.Kernel.Has(module):
			code = c.complain("rmmod: ERROR: Module %s is not currently loaded", module)
		case !c.mayChange():
			code = c.complain("rmmod: ERROR: could not remove '%s': Operation not permitted", module)
		default:
			c.Kernel.unload(module)
		}
	}
	if err := c.Changed(); err != nil {
		return c.complain("rmmod: ERROR: %v", err)
	}
	return code
}

// lsmod lists the modules that are loaded (lsmod(8)).
func lsmod(c *Call) int {
	if len(c.Args) > 0 {
		return c.complain("Usage: lsmod")
	}
	c.print("Module                  Size  Used by\n")
	for _, m := range c.Kernel.Modules() {
		c.print("%-19s %8d  0\n", m, moduleSize(m))
	}
	return 0
}

// insmod refuses the file of a module: a server of the lab has no kernel of its own that could run it.
func insmod(c *Call) int {
	return c.complain("insmod: ERROR: could not insert module %s: not done here: a server of the lab runs no code of modules, see modprobe", strings.Join(c.Args, " "))
}

// depmod has nothing to do: the list of modules is the distribution's.
func depmod(c *Call) int {
	if !c.exists("/lib/modules") {
		return c.complain("depmod: ERROR: could not open directory /lib/modules/%s: No such file or directory", c.Release)
	}
	return 0
}

// modinfo describes modules (modinfo(8)).
func modinfo(c *Call) int {
	fields := map[string]string{"-a": "author", "--author": "author", "-d": "description", "--description": "description", "-l": "license", "--license": "license", "-p": "parm", "--parameters": "parm", "-n": "filename", "--filename": "filename"}
	names := map[string]string{"-F": "field=", "--field": "field=", "-k": "release=", "--set-version": "release=", "-0": "null", "--null": "null", "-b": "basedir=", "--basedir": "basedir="}
	for option := range fields {
		names[option] = fields[option]
	}
	o, err := parse(c.Args, names, false)
	switch {
	case err != nil:
		return c.complain("modinfo: %v", err)
	case o.has("release"), o.has("basedir"), o.has("null"):
		return c.complain("modinfo: ERROR: this option is not done here")
	case len(o.words) == 0:
		return c.complain("modinfo: ERROR: missing module or filename.")
	}
	field := o.value("field")
	for _, f := range slices.Sorted(maps.Values(fields)) {
		if o.has(f) {
			field = f
		}
	}
	files, config, code := c.moduleFiles(), c.modprobeConfig(), 0
	for _, name := range o.words {
		module := config.resolve(name, files)
		if module == "" || files[module] == "" {
			code = c.complain("modinfo: ERROR: Module %s not found.", name)
			continue
		}
		for _, kv := range [][2]string{
			{"filename", path.Join("/lib/modules", c.Release, files[module])}, {"license", "GPL"}, {"depends", ""}, {"intree", "Y"}, {"name", module},
			{"vermagic", c.Release + " SMP preempt mod_unload modversions "},
		} {
			switch field {
			case "":
				c.print("%-15s %s\n", kv[0]+":", kv[1])
			case kv[0]:
				c.print("%s\n", kv[1])
			}
		}
	}
	return code
}
