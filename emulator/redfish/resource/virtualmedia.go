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

// mediaRows returns the rows of the virtual media slots. They belong to the
// system only; the manager links to them (see manager).
func mediaRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/VirtualMedia", Schema: "VirtualMediaCollection", DependsOn: partMedia,
			collectionName: "Virtual Media", memberVariable: "slot"},
		{URI: "/redfish/v1/Systems/{system}/VirtualMedia/{slot}", Schema: "VirtualMedia.v1_6_5", DependsOn: partMedia,
			Read: virtualMedia, Patch: &virtualMediaPatch, Actions: virtualMediaActions},
	}
}

// imageSchemes are the supported values of TransferProtocolType;
// unsupportedSchemes are those that only other BMCs support.
var (
	imageSchemes       = []string{"HTTP", "HTTPS"}
	unsupportedSchemes = []string{"NFS", "CIFS", "SMB", "FTP", "SFTP", "SCP", "TFTP"}
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
	if s.Inserted { // not while the image is being fetched
		o["Image"], o["ConnectedVia"], o["WriteProtected"] = RedactURI(s.Image), "URI", s.WriteProtected
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

// mediaInputs are the properties of an image besides its URI.
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
			{Name: "Image", Kind: Text, Required: true, form: isMediaURI},
			{Name: "Inserted", Kind: Boolean, Allowed: OneOf("true")},
		}, mediaInputs...),
		when:   hasMediaActions,
		Slow:   true, // returns when the image is fetched
		AsTask: func(v View) bool { return v.Dialect.Media.AsyncInsert },
		Apply: func(ctx context.Context, c Call) (Result, error) {
			return c.insertMedia(ctx, message.ActionParameterValueConflict.With)
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

// virtualMediaPatch inserts and ejects media like the actions (DSP2046,
// VirtualMedia.Image and Inserted), and sets whether the slot verifies
// certificates.
var virtualMediaPatch = Patch{
	Inputs: append([]Input{
		{Name: "Image", Kind: Text, form: isMediaURI, nullable: true},
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
			return Result{}, Reject(http.StatusBadRequest, message.PropertyValueConflict.With("Inserted", "Image").About("#/Inserted"))
		}
		if !sent && !ejects { // properties of an image need an image; an eject ignores them
			for _, in := range mediaInputs {
				if _, ok := c.Values[in.Name]; ok {
					return Result{}, Reject(http.StatusBadRequest, message.PropertyValueConflict.With(in.Name, "Image").About("#/"+in.Name))
				}
			}
		}
		if verify, ok := c.Values["VerifyCertificate"].(bool); ok { // before the image is fetched
			if _, err := c.Host.ApplyBMC(ctx, bmc.VerifyMedia{Slot: slot, Verify: verify}); err != nil {
				return Result{}, err
			}
		}
		switch {
		case ejects:
			_, err := c.Host.ApplyBMC(ctx, bmc.EjectMedia{Slot: slot})
			return Result{}, err
		case sent:
			return c.insertMedia(ctx, func(name, _ string) message.Message { return message.PropertyValueConflict.With(name, "Image") })
		}
		return Result{}, nil
	},
}

// OneOf returns an Input.Allowed function for fixed values.
func OneOf(values ...string) func(View) []string {
	return func(View) []string { return values }
}

// isImageURI reports whether a string is a URI from which the BMC can fetch an
// image.
func isImageURI(raw string) bool { return isURIWithScheme(raw, imageSchemes) }

// isMediaURI reports whether a string is an image URI with a scheme that some
// BMC supports. insertMedia rejects the schemes that this one does not support.
func isMediaURI(raw string) bool {
	return isURIWithScheme(raw, slices.Concat(imageSchemes, unsupportedSchemes))
}

func isURIWithScheme(raw string, schemes []string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && slices.Contains(schemes, strings.ToUpper(u.Scheme))
}

// insertMedia fetches and inserts an image. conflict returns the message for a
// value that contradicts the image.
func (c Call) insertMedia(ctx context.Context, conflict func(name, sent string) message.Message) (Result, error) {
	set := c.Values
	image := Value(set, "Image", "")
	scheme, _, _ := strings.Cut(image, ":")
	scheme = strings.ToUpper(scheme)
	if !slices.Contains(imageSchemes, scheme) {
		return Result{}, Reject(http.StatusBadRequest, message.SourceDoesNotSupportProtocol.With(HideURISecrets(image), scheme).About("#/Image"))
	}
	if p := Value(set, "TransferProtocolType", ""); p != "" && p != scheme {
		return Result{}, Reject(http.StatusBadRequest, conflict("TransferProtocolType", p).About("#/TransferProtocolType"))
	}
	_, spec := c.View.slot()
	protect := Value(set, "WriteProtected", true)
	if !protect && !slices.ContainsFunc(spec.Types, func(t string) bool { return t == "USBStick" || t == "Floppy" }) {
		return Result{}, Reject(http.StatusBadRequest, conflict("WriteProtected", "false").About("#/WriteProtected")) // a CD is read-only
	}
	_, err := c.Host.ApplyBMC(ctx, bmc.InsertMedia{
		Slot: c.View.IDs["slot"], Image: image, WriteProtected: protect, Transfer: bmc.Transfer(Value(set, "TransferMethod", "")),
		User: Value(set, "UserName", ""), Password: Value(set, "Password", ""),
	})
	if errors.Is(err, bmc.ErrMedia) && !errors.Is(err, bmc.ErrStorageFull) {
		return Result{}, Reject(http.StatusBadRequest, fetchErrorMessage(err, HideURISecrets(image)).About("#/Image"))
	}
	return Result{}, err
}

// fetchErrorMessage returns the message for an image that could not be fetched.
func fetchErrorMessage(err error, image string) message.Message {
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
