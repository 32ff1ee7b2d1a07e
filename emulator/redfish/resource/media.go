package resource

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
func mediaRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/VirtualMedia", Schema: "VirtualMediaCollection", DependsOn: PartMedia,
			Name: "Virtual Media", MemberVariable: "slot"},
		{URI: "/redfish/v1/Systems/{system}/VirtualMedia/{slot}", Schema: "VirtualMedia.v1_6_5", DependsOn: PartMedia,
			Read: virtualMedia, Patch: &virtualMediaPatch, Actions: virtualMediaActions},
	}
}

// imageSchemes are the protocols that an image can come by, as
// TransferProtocolType spells them; otherSchemes are those that other BMCs can
// fetch by.
var (
	imageSchemes = []string{"HTTP", "HTTPS"}
	otherSchemes = []string{"NFS", "CIFS", "SMB", "FTP", "SFTP", "SCP", "TFTP"}
)

func (v View) slot() (bmc.Slot, bmc.SlotSpec) {
	id := v.IDs["slot"]
	return Find(v.BMC.Slots, id, func(s bmc.Slot) string { return s.ID }),
		Find(v.BMC.Spec.Slots, id, func(s bmc.SlotSpec) string { return s.ID })
}

func virtualMedia(v View) Object {
	s, spec := v.slot()
	o := Object{
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
var mediaInputs = []Input{
	{Name: "WriteProtected", Kind: Boolean},
	{Name: "TransferMethod", Kind: Text, Allowed: OneOf(string(bmc.Stream), string(bmc.Upload))},
	{Name: "TransferProtocolType", Kind: Text, Allowed: OneOf(imageSchemes...)},
	{Name: "UserName", Kind: Text},
	{Name: "Password", Kind: Text, Secret: true},
}

func hasMediaActions(v View) bool { return !v.Dialect.Media.InsertByPatch }

const insertAction = "VirtualMedia.InsertMedia"

var virtualMediaActions = []Action{
	{
		Name: insertAction,
		Inputs: append([]Input{
			{Name: "Image", Kind: Text, Required: true, Form: isMedia},
			{Name: "Inserted", Kind: Boolean, Allowed: OneOf("true")},
		}, mediaInputs...),
		when:   hasMediaActions,
		Slow:   true, // until the image was fetched
		AsTask: func(v View) bool { return v.Dialect.Media.AsyncInsert },
		Apply: func(ctx context.Context, c Call) (Result, error) {
			return c.insert(ctx, message.ActionParameterValueConflict.With)
		},
	},
	{
		Name: "VirtualMedia.EjectMedia", when: hasMediaActions,
		Apply: func(ctx context.Context, c Call) (Result, error) {
			_, err := c.Host.ApplyBMC(ctx, bmc.EjectMedia{Slot: c.View.IDs["slot"]})
			return Result{}, err
		},
	},
}

// virtualMediaPatch inserts and ejects as the actions do (DSP2046,
// VirtualMedia.Image and Inserted), and says whom the slot trusts.
var virtualMediaPatch = Patch{
	Inputs: append([]Input{
		{Name: "Image", Kind: Text, Form: isMedia, Nullable: true},
		{Name: "Inserted", Kind: Boolean},
		{Name: "VerifyCertificate", Kind: Boolean},
	}, mediaInputs...),
	Slow: func(set Values) bool { return Value(set, "Image", "") != "" },
	Apply: func(ctx context.Context, c Call) (Result, error) {
		slot := c.View.IDs["slot"]
		image, sent := c.Values["Image"]
		inserted, says := c.Values["Inserted"].(bool)
		s, _ := c.View.slot()
		ejects := sent && image == nil || says && !inserted
		switch {
		case ejects && image != nil, says && inserted && (sent && image == nil || !sent && s.Image == ""):
			return Result{}, Decline(http.StatusBadRequest, message.PropertyValueConflict.With("Inserted", "Image").About("#/Inserted"))
		}
		if !sent && !ejects { // of an image that there is not; one that goes is not told of
			for _, in := range mediaInputs {
				if _, ok := c.Values[in.Name]; ok {
					return Result{}, Decline(http.StatusBadRequest, message.PropertyValueConflict.With(in.Name, "Image").About("#/"+in.Name))
				}
			}
		}
		if verify, ok := c.Values["VerifyCertificate"].(bool); ok { // before the image comes
			if _, err := c.Host.ApplyBMC(ctx, bmc.VerifyMedia{Slot: slot, Verify: verify}); err != nil {
				return Result{}, err
			}
		}
		switch {
		case ejects:
			_, err := c.Host.ApplyBMC(ctx, bmc.EjectMedia{Slot: slot})
			return Result{}, err
		case sent:
			return c.insert(ctx, func(name, _ string) message.Message { return message.PropertyValueConflict.With(name, "Image") })
		}
		return Result{}, nil
	},
}

func OneOf(values ...string) func(View) []string {
	return func(View) []string { return values }
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
func (c Call) insert(ctx context.Context, conflict func(name, sent string) message.Message) (Result, error) {
	set := c.Values
	image := Value(set, "Image", "")
	scheme, _, _ := strings.Cut(image, ":")
	scheme = strings.ToUpper(scheme)
	if !slices.Contains(imageSchemes, scheme) {
		return Result{}, Decline(http.StatusBadRequest, message.SourceDoesNotSupportProtocol.With(withoutPassword(image), scheme).About("#/Image"))
	}
	if p := Value(set, "TransferProtocolType", ""); p != "" && p != scheme {
		return Result{}, Decline(http.StatusBadRequest, conflict("TransferProtocolType", p).About("#/TransferProtocolType"))
	}
	_, spec := c.View.slot()
	protect := Value(set, "WriteProtected", true)
	if !protect && !slices.ContainsFunc(spec.Types, func(t string) bool { return t == "USBStick" || t == "Floppy" }) {
		return Result{}, Decline(http.StatusBadRequest, conflict("WriteProtected", "false").About("#/WriteProtected")) // nobody writes to a CD
	}
	_, err := c.Host.ApplyBMC(ctx, bmc.InsertMedia{
		Slot: c.View.IDs["slot"], Image: image, WriteProtected: protect, Transfer: bmc.Transfer(Value(set, "TransferMethod", "")),
		User: Value(set, "UserName", ""), Password: Value(set, "Password", ""),
	})
	if errors.Is(err, bmc.ErrMedia) {
		return Result{}, Decline(http.StatusBadRequest, notFetched(err, withoutPassword(image)).About("#/Image"))
	}
	return Result{}, err
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
