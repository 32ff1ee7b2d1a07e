package cloudinit

// networkDifferences are the cases of testdata/network in which netplan's file differs from that of
// Debian's cloud-init, with the reason as docs/cloud-init.md gives it.
var networkDifferences = map[string]string{
	"bond-links-as-text.json":           "or a text in place of the list of a bond's or bridge's interfaces, is refused",
	"v1-bridge-interfaces-as-text.yaml": "or a text in place of the list of a bond's or bridge's interfaces, is refused",
	"v1-gateway-is-a-list.yaml":         "A list in place of a gateway",
	"v1-loopback-without-type.yaml":     "A subnet without a type loses all network data, whatever its interface",
	"v1-name-is-a-number.yaml":          "Names and keys are texts, as netplan reads them",
	"v1-name-null.yaml":                 "an interface whose name is null is called None",
	"v2-colon-before-bracket.yaml":      "`{set-name:}`",
	"v2-date.yaml":                      "Dates of YAML are texts",
	"v2-key-is-a-number.yaml":           "Names and keys are texts, as netplan reads them",
	"v2-key-true.yaml":                  "Names and keys are texts, as netplan reads them",
	"v2-tab-in-text.yaml":               "tabs",
}
