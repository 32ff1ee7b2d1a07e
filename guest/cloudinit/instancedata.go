package cloudinit

import (
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// machines are the names of architectures that uname(2) gives.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// instanceData returns the variables of templates: those of cloud-init that a server's data source and its
// files give ("Instance metadata"). Keys with operators, such as local-hostname, are there with underscores
// too, and those of v1 are also at the top.
func instanceData(i Instance, root Root) dict {
	meta := i.metaData()
	release := osRelease(root)
	source := strings.ToLower(i.Source)
	cloud := source
	ds := dict{"meta_data": meta}
	switch i.Source {
	case NoCloud:
		cloud = "unknown"
		if _, set := meta["dsmode"]; !set {
			meta["dsmode"] = "net"
		}
	case ConfigDrive:
		ds["ec2_metadata"], ds["network_json"] = dict{}, nil
		if v, err := parseJSON(i.NetworkData); err == nil {
			ds["network_json"] = v
		}
	}
	zone := meta["availability-zone"]
	if zone == nil {
		zone = meta["availability_zone"]
	}
	keys := []any{}
	for _, k := range i.PublicKeys {
		keys = append(keys, k)
	}
	v1 := dict{
		"availability_zone": zone, "availability-zone": zone,
		"cloud_id": source, "cloud_name": cloud, "cloud-name": cloud,
		"distro": release["ID"], "distro_version": release["VERSION_ID"], "distro_release": release["VERSION_CODENAME"],
		"variant": release["ID"], "machine": machines[runtime.GOARCH], "platform": source,
		"instance_id": meta["instance-id"], "instance-id": meta["instance-id"],
		"local_hostname": localName(i, root), "local-hostname": localName(i, root),
		"public_ssh_keys": keys, "region": meta["region"], "_beta_keys": []any{"subplatform"},
	}
	if i.Device != "" {
		how := "seed-dir"
		if strings.HasPrefix(i.Device, "/dev") {
			how = "config-disk"
		}
		v1["subplatform"] = how + " (" + i.Device + ")"
	}
	dist := []any{release["ID"], release["VERSION_ID"], release["VERSION_CODENAME"]}
	return variables(dict{"ds": ds, "v1": v1, "sys_info": dict{"dist": dist, "system": "Linux", "variant": release["ID"]}})
}

// metaData returns the metadata with the names that cloud-init adds.
func (i Instance) metaData() dict {
	meta := dict{}
	maps.Copy(meta, i.MetaData)
	for key, from := range map[string]string{"local-hostname": "hostname", "instance-id": "uuid"} {
		if v, has := meta[from]; has && i.Source == ConfigDrive {
			meta[key] = v
		}
	}
	if _, has := meta["instance-id"]; !has {
		meta["instance-id"] = i.ID
	}
	if _, has := meta["local-hostname"]; !has && i.Hostname != "" && i.MetaData == nil {
		meta["local-hostname"] = i.Hostname
	}
	return meta
}

// localName returns the host name of the metadata without its domain, else that of the system.
func localName(i Instance, root Root) string {
	name, _ := i.metaData()["local-hostname"].(string)
	if name == "" {
		name = i.Hostname
	}
	if name == "" {
		f, _ := root.Get("etc/hostname")
		name = strings.TrimSpace(string(f.Content))
	}
	if name, _, _ = strings.Cut(name, "."); name == "" {
		name = "localhost"
	}
	return name
}

// osRelease returns the variables of os-release(5); Debian 12's where there are none.
func osRelease(root Root) map[string]string {
	out := map[string]string{"ID": "debian", "VERSION_ID": "12", "VERSION_CODENAME": "bookworm"}
	for _, name := range []string{"usr/lib/os-release", "etc/os-release"} {
		f, _ := root.Get(name)
		for line := range strings.SplitSeq(string(f.Content), "\n") {
			if key, v, ok := strings.Cut(line, "="); ok {
				out[strings.TrimSpace(key)] = strings.Trim(v, `"'`)
			}
		}
	}
	return out
}

var (
	anOperator = regexp.MustCompile(`\*\*|//|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;]`)
	aVersion   = regexp.MustCompile(`^v[0-9]+$`)
)

// variables adds the names that templates may write with underscores and, at the top of v1, v2 and so
// on, those of their keys.
func variables(d dict) dict {
	out := dict{}
	for _, key := range slices.Sorted(maps.Keys(d)) {
		v := d[key]
		if inner, ok := v.(dict); ok {
			inner = variables(inner)
			if v = inner; aVersion.MatchString(key) {
				maps.Copy(out, inner)
			}
		}
		out[key] = v
		if plain := anOperator.ReplaceAllString(key, "_"); plain != key {
			out[plain] = v
		}
	}
	return out
}
