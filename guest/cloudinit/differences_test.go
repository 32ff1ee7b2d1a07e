package cloudinit

// networkDifferences are the cases of testdata/network in which netplan's file differs from that of
// Debian's cloud-init, with the reason as docs/cloud-init.md gives it.
var networkDifferences = map[string]string{
	"bond-links-as-text.json":  "`bond_links` that are a text are refused",
	"v1-name-is-a-number.yaml": "Names are texts, as netplan reads them",
	"v1-name-null.yaml":        "an interface whose name is null is called None",
	"v2-date.yaml":             "Dates of YAML are texts",
	"v2-key-is-a-number.yaml":  "Names are texts, as netplan reads them",
}
