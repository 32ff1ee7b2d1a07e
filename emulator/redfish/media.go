package redfish

import (
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
		{uri: "/redfish/v1/Systems/{system}/VirtualMedia", schema: "VirtualMediaCollection", needs: ofManager, shows: showsMedia,
			name: "Virtual Media", of: "slot"},
		{uri: "/redfish/v1/Systems/{system}/VirtualMedia/{slot}", schema: "VirtualMedia.v1_6_5", needs: ofManager, shows: showsMedia,
			read: virtualMedia, actions: virtualMediaActions},
	}
}

// imageSchemes are the protocols that an image can come by, as
// TransferProtocolType spells them.
var imageSchemes = []string{"HTTP", "HTTPS"}

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
		"TransferMethod": nil, "TransferProtocolType": nil,
	}
	if s.Inserted { // and not only being fetched
		o["Image"], o["ConnectedVia"], o["WriteProtected"] = withoutPassword(s.Image), "URI", s.WriteProtected
		o["TransferMethod"] = "Upload" // the image was fetched whole
		if u, err := url.Parse(s.Image); err == nil {
			o["ImageName"], o["TransferProtocolType"] = path.Base(u.Path), strings.ToUpper(u.Scheme)
		}
	}
	return o
}

var virtualMediaActions = []action{
	{
		name: "VirtualMedia.InsertMedia",
		inputs: []input{
			{name: "Image", kind: text, required: true, form: isImage},
			{name: "Inserted", kind: boolean, values: oneOf("true")},
			{name: "WriteProtected", kind: boolean},
			{name: "TransferMethod", kind: text, values: oneOf("Stream", "Upload")},
			{name: "TransferProtocolType", kind: text, values: oneOf(imageSchemes...)},
			{name: "UserName", kind: text},
			{name: "Password", kind: text, secret: true},
		},
		slow:  true, // until the image was fetched
		apply: insertMedia,
	},
	{
		name: "VirtualMedia.EjectMedia",
		apply: func(ctx context.Context, c operation) (reply, error) {
			_, err := c.host.ApplyBMC(ctx, bmc.EjectMedia{Slot: c.view.ids["slot"]})
			return reply{}, err
		},
	},
}

func oneOf(values ...string) func(view) []string {
	return func(view) []string { return values }
}

// isImage says whether a text is the address of an image that a BMC can fetch.
func isImage(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && slices.Contains(imageSchemes, strings.ToUpper(u.Scheme))
}

func insertMedia(ctx context.Context, c operation) (reply, error) {
	set := c.set
	image := value(set, "Image", "")
	scheme, _, _ := strings.Cut(image, ":")
	if p := value(set, "TransferProtocolType", ""); p != "" && !strings.EqualFold(p, scheme) {
		return reply{}, decline(http.StatusBadRequest, message.ActionParameterValueConflict.With("TransferProtocolType", p).About("#/TransferProtocolType"))
	}
	_, err := c.host.ApplyBMC(ctx, bmc.InsertMedia{
		Slot: c.view.ids["slot"], Image: image, WriteProtected: value(set, "WriteProtected", true),
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
