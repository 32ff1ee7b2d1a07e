package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// object returns an object of a metal3.io kind from its JSON.
func object(t *testing.T, kind, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	o := new(unstructured.Unstructured)
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	o.SetGroupVersionKind(metal3.GroupVersion.WithKind(kind))
	o.SetNamespace(namespace)
	if o.GetName() == "" {
		o.SetName("checked")
	}
	return o
}

// denied checks that an error contains all of words; without words, that err is nil.
func denied(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if words == nil && err != nil {
		t.Errorf("%s: denied: %v", what, err)
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error = %v, want %q", what, err, w)
		}
	}
}

// TestPoliciesRefuseInTheFormOfWebhooks compares the whole error with that of
// upstream's webhook, and with that of a policy that is not ours.
func TestPoliciesRefuseInTheFormOfWebhooks(t *testing.T) { // B-270
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := freshNamespace(t, c)
	err := c.Create(t.Context(), object(t, "BareMetalHost", ns, `{"metadata":{"name":"dark"},"spec":{"online":false,"disablePowerOff":true}}`))
	want := `admission webhook "baremetalhost.metal3.io" denied the request: `
	if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("Create: %v, want it forbidden with %q", err, want)
	}

	name := "labels." + ns // unique to this test: the API is shared
	for _, text := range []string{
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"` + name + `"},"spec":{
			"matchConstraints":{"resourceRules":[{"apiGroups":["metal3.io"],"apiVersions":["v1alpha1"],"operations":["CREATE"],"resources":["dataimages"]}],
			"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"` + ns + `"}}},
			"validations":[{"expression":"false","message":"none here"}]}}`,
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"` + name + `"},"spec":{"policyName":"` + name + `","validationActions":["Deny"]}}`,
	} {
		o := new(unstructured.Unstructured)
		if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), o) }) // the API ends after the tests anyway
	}
	for range 10_000 {
		err := c.Create(t.Context(), object(t, "DataImage", ns, `{"metadata":{"generateName":"x-"},"spec":{"url":"http://192.0.2.1/x.iso"}}`), client.DryRunAll)
		if err == nil { // the policy is not in force yet
			continue
		}
		if !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+name+"'") || !strings.Contains(err.Error(), "none here") {
			t.Errorf("a policy of somebody else refuses with %v", err)
		}
		return
	}
	t.Error("the policy of somebody else refuses nothing")
}

// Objects that the schema or a policy denies, and similar ones that they allow.
func TestAdmissionOfNewObjects(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := freshNamespace(t, c)
	const (
		host  = "BareMetalHost"
		bes   = "BMCEventSubscription"
		image = "DataImage"
		hfc   = "HostFirmwareComponents"
	)
	at := func(address string) string {
		return `{"spec":{"online":true,"bmc":{"address":"` + address + `","credentialsName":"s"}}}`
	}
	spec := func(fields string) string { return `{"spec":{"online":true,` + fields + `}}` }
	note := func(key, value, fields string) string {
		return `{"metadata":{"name":"noted","annotations":{"` + key + `":"` + value + `"}},"spec":{"online":true` + fields + `}}`
	}
	for _, tt := range []struct {
		ref, kind, object string
		want              []string
	}{
		// The schema.
		{"B-05", host, spec(`"bootMode":"BIOS"`), []string{`spec.bootMode: Unsupported value: "BIOS": supported values: "UEFI", "UEFISecureBoot", "legacy"`}},
		{"B-05", host, spec(`"bootMACAddress":"00-11-22-33-44-55"`), []string{"spec.bootMACAddress: Invalid value", "should match '[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}'"}},
		{"B-05", host, spec(`"automatedCleaningMode":"full"`), []string{`supported values: "metadata", "disabled"`}},
		{"B-05", host, spec(`"image":{"url":"http://a/b","checksum":"0","format":"vhd"}`), []string{`supported values: "raw", "qcow2", "vdi", "vmdk", "live-iso"`}},
		{"B-05", host, spec(`"image":{"url":"http://a/b","checksum":"0","checksumType":"crc"}`), []string{`supported values: "md5", "sha256", "sha512", "auto"`}},
		{"B-05", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"3"}]}`), []string{`supported values: "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"`}},
		{"B-05", host, spec(`"raid":{"softwareRAIDVolumes":[{"level":"5"}]}`), []string{`supported values: "0", "1", "1+0"`}},
		{"B-05", host, spec(`"raid":{"softwareRAIDVolumes":[{"level":"1"},{"level":"0"},{"level":"0"}]}`), []string{"must have at most 2 items"}},
		{"B-05", host, spec(`"raid":{"softwareRAIDVolumes":[{"level":"1","physicalDisks":[{"serialNumber":"a"}]}]}`), []string{"should have at least 2 items"}},
		{"B-05", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"1","name":"` + strings.Repeat("n", 65) + `"}]}`), []string{"may not be more than 64"}},
		{"B-05", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"1","numberOfPhysicalDisks":0}]}`), []string{"should be greater than or equal to 1"}},
		{"B-05", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"1","sizeGibibytes":-1}]}`), []string{"should be greater than or equal to 0"}},
		{"B-05", host, spec(`"rootDeviceHints":{"minSizeGigabytes":-1}`), []string{"should be greater than or equal to 0"}},
		{"B-05", host, spec(`"inspectionMode":"slow"`), []string{`supported values: "disabled", "agent"`}},
		{"B-05", host, spec(`"bmc":{"address":"ipmi://a"}`), []string{"spec.bmc.credentialsName: Required value"}},
		{"B-05", host, spec(`"bmc":{"credentialsName":"s"}`), []string{"spec.bmc.address: Required value"}},
		{"B-05", host, `{"spec":{}}`, []string{"spec.online: Required value"}},

		// Power.
		{"B-125", host, `{"spec":{"online":false,"disablePowerOff":true}}`, []string{"node can't simultaneously have online set to false and have power off disabled"}},
		{"B-125", host, spec(`"disablePowerOff":true`), nil},

		// Images.
		{"B-150", host, spec(`"image":{"url":"file:///a","checksum":"0"}`), []string{`image URL file:///a is invalid: invalid scheme in URL, "file" not allowed`}},
		{"B-150", host, spec(`"image":{"url":"a","checksum":"0"}`), []string{`image URL a is invalid: parse "a": invalid URI for request`}},
		{"B-150", host, spec(`"image":{"url":"gopher://a/b","checksum":"0"}`), nil},
		{"B-151", host, spec(`"image":{"url":"http://a/b"}`), []string{"checksum is required for normal images"}},
		{"B-151", host, spec(`"image":{"url":"http://a/b","format":"live-iso"}`), nil},
		{"B-151", host, spec(`"image":{"url":"oci://a/b"}`), nil},
		{"B-151", host, spec(`"image":{"url":"oci://a/b","checksum":"0"}`), []string{"spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums)"}},
		{"B-62", host, spec(`"image":{"url":""}`), nil}, // the specification: clear the URL to deprovision

		// Root device hints.
		{"B-161", host, spec(`"rootDeviceHints":{"deviceName":"sda"}`), []string{`device name of root device hint must be a /dev/ path, not "sda"`}},
		{"B-161", host, spec(`"rootDeviceHints":{"deviceName":"/dev/disk/by-id/x"}`), []string{`device name of root device hint must be path in /dev/ or /dev/disk/by-path/, not "/dev/disk/by-id/x"`}},
		{"B-161", host, spec(`"rootDeviceHints":{"deviceName":"/dev/disk/by-path/x/y"}`), []string{`must be path in /dev/ or /dev/disk/by-path/, not "/dev/disk/by-path/x/y"`}},
		{"B-161", host, spec(`"rootDeviceHints":{"deviceName":"/dev/disk/by-path/x"}`), nil},

		// RAID.
		{"B-171", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"1"}],"softwareRAIDVolumes":[{"level":"1"}]}`), []string{"hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time"}},
		{"B-171", host, spec(`"raid":{"hardwareRAIDVolumes":[],"softwareRAIDVolumes":[{"level":"1"}]}`), nil},
		{"B-171", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"1"},{"level":"1","physicalDisks":["a","b"]}]}`), []string{"'physicalDisks' specified without 'controller' in hardware RAID volume 1"}},
		{"B-171", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"1","controller":"c","physicalDisks":["a","b"],"numberOfPhysicalDisks":3}]}`), []string{"the 'numberOfPhysicalDisks'[3] and number of 'physicalDisks'[2] is not same for volume 0"}},
		{"B-171", host, spec(`"raid":{"hardwareRAIDVolumes":[{"level":"1","controller":"c","physicalDisks":["a","b"],"numberOfPhysicalDisks":2}]}`), nil},
		{"B-171", host, spec(`"bmc":{"address":"ipmi://a","credentialsName":"s"},"raid":{"hardwareRAIDVolumes":[{"level":"1"}]}`), []string{"raid settings are defined, but the node's driver ipmi does not support RAID."}},
		{"B-171", host, spec(`"bootMACAddress":"00:11:22:33:44:55","bmc":{"address":"ilo4-virtualmedia://a","credentialsName":"s"},"raid":{"softwareRAIDVolumes":[{"level":"1"}]}`), []string{"raid settings are defined, but the node's driver ilo does not support RAID."}},
		{"B-171", host, spec(`"bmc":{"address":"idrac://a","credentialsName":"s"},"raid":{"softwareRAIDVolumes":[{"level":"1"}]}`), []string{"node's driver idrac does not support software RAID."}},
		{"B-171", host, spec(`"bmc":{"address":"idrac://a","credentialsName":"s"},"raid":{"hardwareRAIDVolumes":[{"level":"2"}]}`), nil},
		{"B-171", host, spec(`"bmc":{"address":"ipmi://a","credentialsName":"s"},"raid":{"hardwareRAIDVolumes":[{"level":"1"}]},"externallyProvisioned":true`), nil},
		{"B-171", host, spec(`"bmc":{"address":"ipmi://a","credentialsName":"s"},"raid":{"hardwareRAIDVolumes":[]}`), nil},

		// Firmware is taken with a warning, see below; its components need URLs.
		{"B-262", host, spec(`"firmware":{"sriovEnabled":true}`), nil},
		{"B-211", hfc, `{"spec":{"updates":[{"component":"bmc","url":"file:///a"}]}}`, []string{`invalid URL "file:///a" in FirmwareUpdate in component "bmc": invalid scheme in URL, "file" not allowed`}},
		{"B-211", hfc, `{"spec":{"updates":[{"component":"bios","url":"a"},{"component":"bmc","url":"b"}]}}`, []string{`[invalid URL "a" in FirmwareUpdate in component "bios": `, `, invalid URL "b" in FirmwareUpdate in component "bmc": `}},
		{"B-211", hfc, `{"spec":{"updates":[{"component":"bmc","url":"https://a/b"}]}}`, nil},

		// Data images and subscriptions.
		{"B-230", image, `{"spec":{"url":"file:///a"}}`, []string{`URL "file:///a" is invalid: invalid scheme in URL, "file" not allowed`}},
		{"B-230", image, `{"spec":{"url":""}}`, []string{`URL "" is invalid: parse "": empty url`}},
		{"B-230", image, `{"spec":{"url":"http://a/b.iso"}}`, nil},
		{"B-245", bes, `{"spec":{"destination":"https://a/"}}`, []string{"hostName cannot be empty"}},
		{"B-245", bes, `{"spec":{"hostName":"h"}}`, []string{"destination cannot be empty"}},
		{"B-245", bes, `{"spec":{"hostName":"h","destination":"a"}}`, []string{`destination is invalid: parse "a": invalid URI for request`}},
		{"B-245", bes, `{"spec":{"hostName":"h","destination":"https://a"}}`, []string{"hostname-only destination must have a trailing slash"}},
		{"B-245", bes, `{"spec":{"hostName":"h","destination":"https://a/","httpHeadersRef":{"name":"s","namespace":"elsewhere"}}}`, []string{"httpHeadersRef secret must be in the same namespace as the BMCEventSubscription"}},
		{"B-245", bes, `{"spec":{"hostName":"h","destination":"https://a/","httpHeadersRef":{"name":"s","namespace":"` + ns + `"}}}`, nil},

		// The BMC's address.
		{"B-130", host, at("ipmi://a_b"), []string{"failed to parse BMC address information: BMC address hostname/IP : [a_b] is invalid"}},
		{"B-130", host, at(strings.Repeat("a", 64) + ".example"), []string{"BMC address hostname/IP : [" + strings.Repeat("a", 64) + ".example] is invalid"}},
		{"B-130", host, at("redfish:/redfish/v1"), []string{"BMC address hostname/IP : [] is invalid"}},
		{"B-270", host, at("telnet://192.0.2.1"), []string{"Unknown BMC type 'telnet' for address telnet://192.0.2.1"}},
		{"B-270", host, at("telnet://me:pw@192.0.2.1"), []string{"Unknown BMC type 'telnet' for address telnet://192.0.2.1"}},
		{"B-270", host, at("ilo4+http://192.0.2.1"), []string{"Unknown BMC type 'ilo4+http' for address ilo4+http://192.0.2.1"}},
		{"B-270", host, at("redfish://a/%zz"), []string{"failed to parse BMC address information: "}},

		// Names, MAC addresses, secure boot, secrets.
		{"B-270", host, `{"metadata":{"name":"a_b"},"spec":{"online":true}}`, []string{"metadata.name: Invalid value"}}, // Kubernetes' own
		{"B-270", host, `{"metadata":{"name":"0e8e1b6c-1b7c-4a52-b5c3-3f0e5b8a7d11"},"spec":{"online":true}}`, []string{"BareMetalHost resource name cannot be a UUID"}},
		{"B-270", host, spec(`"bmc":{"address":"ipmi://a","credentialsName":"s"},"bootMACAddress":"00:11:22:33:44:55:66"`), []string{"address 00:11:22:33:44:55:66: invalid MAC address"}},
		{"B-270", host, spec(`"bmc":{"address":"ipmi://a","credentialsName":"s"},"bootMACAddress":"00:11:22:33:44:55:66:77"`), nil},
		{"B-270", host, spec(`"bmc":{"address":"ipmi://a","credentialsName":"s"},"bootMode":"UEFISecureBoot"`), []string{"BMC driver ipmi does not support secure boot"}},
		{"B-270", host, spec(`"bmc":{"address":"redfish://a","credentialsName":"s"},"inspectionMode":"disabled"`), []string{"BMC driver redfish requires a BootMACAddress value"}},
		{"B-270", host, spec(`"userData":{"name":"s","namespace":"` + ns + `"},"metaData":{"name":"s"}`), nil},

		// Annotations.
		{"B-270", host, note("inspect.metal3.io", "twice", ""), []string{`invalid value for the inspect.metal3.io annotation, allowed are "disabled" or ""`}},
		{"B-270", host, note("inspect.metal3.io", "", ""), nil},
		{"B-270", host, note("inspect.metal3.io/hardwaredetails", "{}", ""), []string{"when hardware details are provided, inspection must be disabled (either via inspect.metal3.io annotation or inspectionMode field)"}},
		{"B-270", host, note("inspect.metal3.io/hardwaredetails", "{}", `,"inspectionMode":"disabled"`), nil},
		{"B-251", host, note("inspect.metal3.io", "disabled", `,"inspectionMode":"agent"`), []string{"inspect.metal3.io annotation and inspectionMode field have contradicting values"}},
		{"B-251", host, note("inspect.metal3.io", "disabled", `,"inspectionMode":"disabled"`), nil},

		{"B-270", host, spec(`"rootDeviceHints":{"deviceName":"sda"},"image":{"url":"a"}`), []string{
			`[device name of root device hint must be a /dev/ path, not "sda", image URL a is invalid: parse "a": invalid URI for request, checksum is required for normal images]`}},
	} {
		err := c.Create(t.Context(), object(t, tt.kind, ns, tt.object), client.DryRunAll)
		denied(t, tt.ref+" "+tt.kind+" "+tt.object, err, tt.want...)
	}
}

// Changes that are denied or allowed depending on the old object.
func TestAdmissionOfChanges(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := freshNamespace(t, c)
	for i, tt := range []struct {
		ref, kind, was, status, change string
		want                           []string
	}{
		{"B-141", "BareMetalHost", `"online":true,"bootMACAddress":"00:11:22:33:44:aa"`, "", `"bootMACAddress":"00:11:22:33:44:ab"`, []string{"bootMACAddress can not be changed once it is set"}},
		{"B-141", "BareMetalHost", `"online":true,"bootMACAddress":"00:11:22:33:44:aa"`, "", `"bootMACAddress":null`, []string{"bootMACAddress can not be changed once it is set"}},
		{"B-141", "BareMetalHost", `"online":true,"bootMACAddress":"00:11:22:33:44:aa"`, "", `"bootMACAddress":"00:11:22:33:44:AA"`, nil},
		{"B-141", "BareMetalHost", `"online":true`, "", `"bootMACAddress":"00:11:22:33:44:aa"`, nil},
		{"B-271", "BareMetalHost", `"online":true,"bmc":{"address":"ipmi://a","credentialsName":"s"}`, "available", `"bmc":{"address":"ipmi://b"}`, []string{"BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached"}},
		{"B-271", "BareMetalHost", `"online":true,"bmc":{"address":"ipmi://a","credentialsName":"s"}`, "registering", `"bmc":{"address":"ipmi://b"}`, nil},
		{"B-94", "BareMetalHost", `"online":true,"bmc":{"address":"ipmi://a","credentialsName":"s"}`, "detached", `"bmc":{"address":"ipmi://b"}`, nil},
		{"B-271", "BareMetalHost", `"online":true`, "unmanaged", `"bmc":{"address":"ipmi://b","credentialsName":"s"}`, nil},
		{"B-260", "BareMetalHost", `"online":true`, "provisioned", `"externallyProvisioned":true`, []string{"externallyProvisioned can only be enabled when in Available state, currently in provisioned"}},
		{"B-260", "BareMetalHost", `"online":true`, "available", `"externallyProvisioned":true`, nil},
		{"B-64", "BareMetalHost", `"online":true,"externallyProvisioned":true`, "externally provisioned", `"externallyProvisioned":false`, nil},
		{"B-125", "BareMetalHost", `"online":true,"disablePowerOff":true`, "", `"online":false`, []string{"node can't simultaneously have online set to false and have power off disabled"}},
		{"B-245", "BMCEventSubscription", `"hostName":"h","destination":"https://a/"`, "", `"context":"c"`, []string{"subscriptions cannot be updated, please recreate it"}},
	} {
		o := object(t, tt.kind, ns, fmt.Sprintf(`{"metadata":{"name":"changed-%d"},"spec":{%s}}`, i, tt.was))
		create(t, c, o)
		if tt.status != "" {
			status, operational := tt.status, "OK"
			if status == "detached" {
				status, operational = "provisioned", "detached"
			}
			patch := fmt.Sprintf(`{"status":{"operationalStatus":%q,"errorMessage":"","errorCount":0,"hardwareProfile":"","poweredOn":false,`+
				`"provisioning":{"state":%q,"ID":"","image":{"url":""}}}}`, operational, status)
			if err := c.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{`+tt.change+`}}`)), client.DryRunAll)
		denied(t, tt.ref+" "+tt.kind+" "+tt.was+" -> "+tt.change, err, tt.want...)
	}
}

// The finalizers of an object that is being deleted can be removed, even though the
// policies would deny the object.
func TestAdmissionAllowsRemovingFinalizersOfADeletedObject(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := freshNamespace(t, c)
	o := object(t, "BMCEventSubscription", ns, `{"metadata":{"name":"leaving","finalizers":["example.org/held"]},"spec":{"hostName":"h","destination":"https://a/"}}`)
	create(t, c, o)
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	patch := `{"metadata":{"finalizers":null},"spec":{"destination":"nowhere"}}`
	if err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Errorf("Patch of an object that is being deleted: %v", err)
	}
}

// The policies parse a BMC address, and know what its driver supports, as controller/bmc
// does.
func TestAdmissionParsesBMCAddressesAsDriversDo(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := freshNamespace(t, c)
	var addresses []string
	for _, scheme := range []string{"ipmi", "libvirt", "redfish", "ilo5-redfish", "idrac-redfish", "redfish-virtualmedia", "ilo5-virtualmedia",
		"idrac-virtualmedia", "redfish-uefihttp", "ibmc", "idrac", "ilo4", "ilo4-virtualmedia", "ilo5", "irmc", "ilo5-redfishes", "snmp"} {
		for _, plus := range []string{"", "+http", "+https", "+ftp"} {
			addresses = append(addresses, scheme+plus+"://192.0.2.1/redfish/v1/Systems/1")
		}
	}
	addresses = append(addresses, "192.0.2.1", "192.0.2.1:623", "bmc.example", "bmc.example:623", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:623",
		"redfish:192.0.2.1", "redfish:623", "redfish:/x", "bmc.example:port", "ipmi://a:0", "ipmi://a:65535", "ipmi://a:65536", "ipmi://a:x", "ipmi://-a",
		"ipmi://a..b", "ipmi://a?privilegelevel=OPERATOR", "ipmi://a?privilegelevel=operator", "redfish://a?privilegelevel=x", "REDFISH://192.0.2.1",
		"redfish://[2001:db8::1]:8443/redfish/v1/Systems/1", "redfish://[2001:db8::1%25eth0]/", "redfish://u:p@192.0.2.1/")
	for _, address := range addresses {
		parsed, parseErr := bmc.ParseAddress(address)
		for name, wanted := range map[string]struct {
			spec    string
			refused bool // because the driver does not support it
		}{
			"address": {`"bootMACAddress":"00:11:22:33:44:aa"`, false},
			"no MAC":  {`"online":true`, parsed.NeedsMAC},
			"RAID":    {`"bootMACAddress":"00:11:22:33:44:aa","raid":{"hardwareRAIDVolumes":[{"level":"1"}]}`, parsed.RAID == "no-raid"},
			"md":      {`"bootMACAddress":"00:11:22:33:44:aa","raid":{"softwareRAIDVolumes":[{"level":"1"}]}`, slices.Contains([]string{"no-raid", "idrac-wsman", "ilo5", "irmc"}, parsed.RAID)},
			"secure":  {`"bootMACAddress":"00:11:22:33:44:aa","bootMode":"UEFISecureBoot"`, !parsed.SecureBoot},
		} {
			if parseErr != nil && name != "address" {
				continue // one denial is enough
			}
			err := c.Create(t.Context(), object(t, "BareMetalHost", ns,
				`{"spec":{"online":true,"bmc":{"address":"`+address+`","credentialsName":"s"},`+wanted.spec+`}}`), client.DryRunAll)
			if refused := err != nil; refused != (parseErr != nil || wanted.refused) {
				t.Errorf("%s, %s: admission: %v; the driver: %v, %+v", address, name, err, parseErr, parsed.Traits)
			}
			if unknown := new(bmc.UnknownTypeError); errors.As(parseErr, &unknown) && !apierrors.IsForbidden(err) {
				t.Errorf("%s: admission: %v, want Forbidden", address, err)
			}
		}
	}
}

// A user may refer to a Secret of another namespace if the user may read it. Another user,
// who may not read it, may change other fields of the object.
func TestAdmissionOfSecretsInOtherNamespaces(t *testing.T) {
	admin := clientFor(t, sharedAPI(t).RESTConfig())
	ns, other := freshNamespace(t, admin), freshNamespace(t, admin)
	create(t, admin, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hosts-" + ns}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"metal3.io"}, Resources: []string{"baremetalhosts"}, Verbs: []string{"get", "create", "patch"}},
	}})
	create(t, admin, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"shared"}, Verbs: []string{"get"}},
	}})
	users := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane"}, {Kind: "User", APIGroup: rbacv1.GroupName, Name: "joe"}}
	create(t, admin, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hosts"}, Subjects: users,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hosts-" + ns}})
	create(t, admin, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "reader"}, Subjects: users[:1],
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}})
	as := func(user string) client.Client {
		config := rest.CopyConfig(sharedAPI(t).RESTConfig())
		config.Impersonate.UserName = user
		return clientFor(t, config)
	}
	jane, joe := as("jane"), as("joe")
	for _, field := range []string{"userData", "networkData", "metaData"} {
		cannot := func(user, secret string) []string {
			return []string{fmt.Sprintf("baremetalhosts.metal3.io \"checked\" is forbidden: %s: user %q cannot get Secret %q in the namespace %q", field, user, secret, other)}
		}
		for _, tt := range []struct {
			who    client.Client
			secret string // name and namespace
			in     string
			want   []string
		}{
			{jane, "shared", other, nil},
			{jane, "another", other, cannot("jane", "another")},
			{joe, "shared", other, cannot("joe", "shared")},
			{joe, "shared", ns, nil},
			{joe, "shared", "", nil},
			{admin, "another", other, nil},
		} {
			o := object(t, "BareMetalHost", ns, `{"spec":{"online":true,"`+field+`":{"name":"`+tt.secret+`","namespace":"`+tt.in+`"}}}`)
			denied(t, field+" "+tt.secret+" in "+tt.in, tt.who.Create(t.Context(), o, client.DryRunAll), tt.want...)
		}
		o := object(t, "BareMetalHost", ns, `{"metadata":{"name":"of-`+strings.ToLower(field)+`"},"spec":{"online":true,"`+field+`":{"name":"shared","namespace":"`+other+`"}}}`)
		if err := jane.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		edit := func(patch string) error {
			return joe.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}
		denied(t, "joe's edit of something else", edit(`{"spec":{"online":false}}`))
		denied(t, "joe's edit of the reference", edit(`{"spec":{"`+field+`":{"name":"another"}}}`), `user "joe" cannot get Secret "another"`)
	}
}

func TestFirmwareFieldGetsAWarning(t *testing.T) { // B-262, B-270
	config := sharedAPI(t).RESTConfig()
	var warned warnings
	config.WarningHandler = &warned
	c := clientFor(t, config)
	o := object(t, "BareMetalHost", freshNamespace(t, c), `{"spec":{"online":true,"firmware":{"virtualizationEnabled":true}}}`)
	if err := c.Create(t.Context(), o, client.DryRunAll); err != nil {
		t.Fatalf("Create() error = %v, want none", err)
	}
	const want = "Currently the firmware field is only supported by ilo4/ilo5/irmc/idrac" // the specification's note
	if got := strings.Join(warned, "\n"); !strings.Contains(got, want) {
		t.Errorf("warnings = %q, want %q", got, want)
	}
}

type warnings []string

func (w *warnings) HandleWarningHeader(code int, agent, text string) { *w = append(*w, text) }

// TestOneFamilyOwnsTheOperatingSystemOfAHost: the label names it, a second one is refused until
// the label is gone, and no Machine claims the host of another family.
func TestOneFamilyOwnsTheOperatingSystemOfAHost(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	ns := freshNamespace(t, c)
	host := object(t, "BareMetalHost", ns, `{"metadata":{"name":"owned","labels":{"metalab.dev/os-owner":"machineconfig"}},"spec":{"online":false}}`)
	denied(t, "the first owner", c.Create(t.Context(), host))
	patch := func(text string) error {
		return c.Patch(t.Context(), object(t, "BareMetalHost", ns, `{"metadata":{"name":"owned"}}`), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	label := func(owner string) string {
		return `{"metadata":{"labels":{"metalab.dev/os-owner":` + owner + `}}}`
	}
	claim := `{"spec":{"consumerRef":{"apiVersion":"cluster.k8s.io/v1alpha1","kind":"Machine","namespace":"x","name":"w-0"}}}`
	denied(t, "a second owner", patch(label(`"hoc"`)), "machineconfig owns the operating system", "before hoc")
	denied(t, "an unknown owner", patch(label(`"me"`)), `"me" is not one of`)
	denied(t, "a claim", patch(claim), "machineconfig owns the operating system", "may claim it")
	denied(t, "no owner", patch(label("null")))
	denied(t, "the other family", patch(label(`"hoc"`)))
	denied(t, "its claim", patch(claim))
	denied(t, "the first family again", patch(label(`"machineconfig"`)), "hoc owns the operating system")
}
