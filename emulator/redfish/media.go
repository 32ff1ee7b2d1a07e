package redfish

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// mediaRows: the slots are here and nowhere else; the manager links to them
// (manager.go says why).
func mediaRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Systems/{system}/VirtualMedia", schema: "VirtualMediaCollection", shows: PartMedia,
			name: "Virtual Media", of: "slot"},
		{uri: "/redfish/v1/Systems/{system}/VirtualMedia/{slot}", schema: "VirtualMedia.v1_6_5", shows: PartMedia,
			read: virtualMedia, patch: &virtualMediaPatch, actions: virtualMediaActions},
	}
}

// imageSchemes are the protocols that an image can come by, as
// TransferProtocolType spells them; otherSchemes are those that other BMCs can
// fetch by.
var (
	imageSchemes = []string{"HTTP", "HTTPS"}
	otherSchemes = []string{"NFS", "CIFS", "SMB", "FTP", "SFTP", "SCP", "TFTP"}
)

func (v view) slot() (bmc.Slot, bmc.SlotSpec) {
	id := v.ids["slot"]
	return pick(v.b.Slots, id, func(s bmc.Slot) string { return s.ID }),
		pick(v.b.Spec.Slots, id, func(s bmc.SlotSpec) string { return s.ID })
}

func virtualMedia(v view) object {
	s, spec := v.slot()
	o := object{
		"Name": spec.Name, "MediaTypes": append([]string{}, spec.Types...), "Status": status("Enabled"),
		"Inserted": s.Inserted, "Image": nil, "ImageName": nil, "ConnectedVia": "NotConnected", "WriteProtected": nil,
		"TransferMethod": nil, "TransferProtocolType": nil, "UserName": nil, "Password": nil, "VerifyCertificate": s.Verify,
		"EjectPolicy": "Persistent",
	}
	if s.Inserted { // and not only being fetched
		o["Image"], o["ConnectedVia"], o["WriteProtected"] = withoutPassword(s.Image), "URI", s.WriteProtected
		o["TransferMethod"] = string(cmp.Or(s.Transfer, bmc.Upload))
		if s.User != "" {
			o["UserName"] = s.User
		}
		if u, err := url.Parse(s.Image); err == nil {
			o["ImageName"], o["TransferProtocolType"] = path.Base(u.Path), strings.ToUpper(u.Scheme)
		}
	}
	return o
}

// mediaInputs are what a client says of an image, beside the image.
var mediaInputs = []input{
	{name: "WriteProtected", kind: boolean},
	{name: "TransferMethod", kind: text, values: oneOf(string(bmc.Stream), string(bmc.Upload))},
	{name: "TransferProtocolType", kind: text, values: oneOf(imageSchemes...)},
	{name: "UserName", kind: text},
	{name: "Password", kind: text, secret: true},
}

func hasMediaActions(v view) bool { return !v.d.Media.InsertByPatch }

const insertAction = "VirtualMedia.InsertMedia"

var virtualMediaActions = []action{
	{
		name: insertAction,
		inputs: append([]input{
			{name: "Image", kind: text, required: true, form: isMedia},
			{name: "Inserted", kind: boolean, values: oneOf("true")},
		}, mediaInputs...),
		when: hasMediaActions,
		slow: true, // until the image was fetched
		late: func(v view) bool { return v.d.Media.AsyncInsert },
		apply: func(ctx context.Context, c operation) (reply, error) {
			return c.insert(ctx, message.ActionParameterValueConflict.With)
		},
	},
	{
		name: "VirtualMedia.EjectMedia", when: hasMediaActions,
		apply: func(ctx context.Context, c operation) (reply, error) {
			_, err := c.host.ApplyBMC(ctx, bmc.EjectMedia{Slot: c.view.ids["slot"]})
			return reply{}, err
		},
	},
}

// virtualMediaPatch inserts and ejects as the actions do (DSP2046,
// VirtualMedia.Image and Inserted), and says whom the slot trusts.
var virtualMediaPatch = patch{
	inputs: append([]input{
		{name: "Image", kind: text, form: isMedia, nullable: true},
		{name: "Inserted", kind: boolean},
		{name: "VerifyCertificate", kind: boolean},
	}, mediaInputs...),
	slow: func(set values) bool { return value(set, "Image", "") != "" },
	apply: func(ctx context.Context, c operation) (reply, error) {
		slot := c.view.ids["slot"]
		image, sent := c.set["Image"]
		inserted, says := c.set["Inserted"].(bool)
		s, _ := c.view.slot()
		ejects := sent && image == nil || says && !inserted
		switch {
		case ejects && image != nil, says && inserted && (sent && image == nil || !sent && s.Image == ""):
			return reply{}, decline(http.StatusBadRequest, message.PropertyValueConflict.With("Inserted", "Image").About("#/Inserted"))
		}
		if !sent && !ejects { // of an image that there is not; one that goes is not told of
			for _, in := range mediaInputs {
				if _, ok := c.set[in.name]; ok {
					return reply{}, decline(http.StatusBadRequest, message.PropertyValueConflict.With(in.name, "Image").About("#/"+in.name))
				}
			}
		}
		if verify, ok := c.set["VerifyCertificate"].(bool); ok { // before the image comes
			if _, err := c.host.ApplyBMC(ctx, bmc.VerifyMedia{Slot: slot, Verify: verify}); err != nil {
				return reply{}, err
			}
		}
		switch {
		case ejects:
			_, err := c.host.ApplyBMC(ctx, bmc.EjectMedia{Slot: slot})
			return reply{}, err
		case sent:
			return c.insert(ctx, func(name, _ string) message.Message { return message.PropertyValueConflict.With(name, "Image") })
		}
		return reply{}, nil
	},
}

func oneOf(values ...string) func(view) []string {
	return func(view) []string { return values }
}

// isImage says whether a text is the address of an image that a BMC can fetch.
func isImage(raw string) bool { return isAddress(raw, imageSchemes) }

// isMedia says whether a text is the address of an image, by a protocol that
// BMCs fetch by; insert says which of them this one does not.
func isMedia(raw string) bool { return isAddress(raw, slices.Concat(imageSchemes, otherSchemes)) }

func isAddress(raw string, schemes []string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && slices.Contains(schemes, strings.ToUpper(u.Scheme))
}

// insert has the image fetched; conflict words that a value does not go with
// the image.
func (c operation) insert(ctx context.Context, conflict func(name, sent string) message.Message) (reply, error) {
	set := c.set
	image := value(set, "Image", "")
	scheme, _, _ := strings.Cut(image, ":")
	scheme = strings.ToUpper(scheme)
	if !slices.Contains(imageSchemes, scheme) {
		return reply{}, decline(http.StatusBadRequest, message.SourceDoesNotSupportProtocol.With(withoutPassword(image), scheme).About("#/Image"))
	}
	if p := value(set, "TransferProtocolType", ""); p != "" && p != scheme {
		return reply{}, decline(http.StatusBadRequest, conflict("TransferProtocolType", p).About("#/TransferProtocolType"))
	}
	_, spec := c.view.slot()
	protect := value(set, "WriteProtected", true)
	if !protect && !slices.ContainsFunc(spec.Types, func(t string) bool { return t == "USBStick" || t == "Floppy" }) {
		return reply{}, decline(http.StatusBadRequest, conflict("WriteProtected", "false").About("#/WriteProtected")) // nobody writes to a CD
	}
	_, err := c.host.ApplyBMC(ctx, bmc.InsertMedia{
		Slot: c.view.ids["slot"], Image: image, WriteProtected: protect, Transfer: bmc.Transfer(value(set, "TransferMethod", "")),
		User: value(set, "UserName", ""), Password: value(set, "Password", ""),
	})
	if errors.Is(err, bmc.ErrMedia) {
		return reply{}, decline(http.StatusBadRequest, notFetched(err, withoutPassword(image)).About("#/Image"))
	}
	return reply{}, err
}

// notFetched words why an image could not be had.
func notFetched(err error, image string) message.Message {
	var known *bmc.MediaError
	if !errors.As(err, &known) {
		return message.CouldNotEstablishConnection.With(image)
	}
	switch known.Fault {
	case bmc.Absent:
		return message.ResourceMissingAtURI.With(image)
	case bmc.Denied:
		return message.ResourceAtURIUnauthorized.With(image, known.Err.Error())
	case bmc.Protocol:
		scheme, _, _ := strings.Cut(image, ":")
		return message.SourceDoesNotSupportProtocol.With(image, strings.ToUpper(scheme))
	case bmc.Format:
		return message.ResourceAtURIInUnknownFormat.With(image)
	}
	return message.CouldNotEstablishConnection.With(image)
}

// withoutPassword is a text that may be an address, without the password in
// it.
func withoutPassword(raw string) string {
	if !strings.Contains(raw, "@") || !strings.Contains(raw, ":") {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "…"
	}
	if _, has := u.User.Password(); !has {
		return raw
	}
	return u.Redacted()
}
