package steps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

const updateURI = root + "/UpdateService"

// The UpdateParameters of a multipart push: its targets.
var (
	biosTargets = object{"Targets": []string{updateURI + "/FirmwareInventory/BIOS"}}
	bmcTargets  = object{"Targets": []string{updateURI + "/FirmwareInventory/BMC"}}
)

// registerUpdates binds the steps about firmware updates. SimpleUpdate is a
// request like others: its body names an image by FIRMWARE or DAMAGED-FIRMWARE.
func (s *scenario) registerUpdates(sc *stepRegistry) {
	sc.Step(`^the response is 202 with a task monitor$`, func() error {
		if r := s.last(); r.status != 202 || r.header.Get("Location") == "" || r.header.Get("Retry-After") == "" {
			return fmt.Errorf("the response is %s", r)
		}
		if err := s.send("GET", s.saved["MONITOR"], nil); err != nil {
			return err
		}
		return equal("the status of the task monitor", s.response.status, 202)
	})
	sc.Step(`^the client pushes a BIOS image to HttpPushUri$`, func() error {
		uri, err := s.pushURI("HttpPushUri")
		if err != nil {
			return err
		}
		return s.push(uri, "application/octet-stream", biosFirmware())
	})
	for what, parts := range map[string]func() []formPart{ // in any order: each step is bound alone
		"a BIOS image":         func() []formPart { return []formPart{updateParameters(biosTargets), updateFile(biosFirmware())} },
		"a damaged BIOS image": func() []formPart { return []formPart{updateParameters(biosTargets), updateFile(damagedFirmware())} },
		"a BIOS image with the Targets of a BMC": func() []formPart {
			return []formPart{updateParameters(bmcTargets), updateFile(biosFirmware())}
		},
		"UpdateParameters alone": func() []formPart { return []formPart{updateParameters(biosTargets)} },
		"UpdateFile alone":       func() []formPart { return []formPart{updateFile(biosFirmware())} },
	} {
		sc.Step(`^the client pushes `+what+` to MultipartHttpPushUri$`, func() error { return s.pushParts(parts()) })
	}
}

// formPart is a part of a multipart push (DSP0266, 11.3).
type formPart struct {
	name, file, kind string
	content          []byte
}

func updateParameters(v object) formPart {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the parameters are ours
	}
	return formPart{name: "UpdateParameters", kind: "application/json", content: b}
}

func updateFile(image []byte) formPart {
	return formPart{name: "UpdateFile", file: "bios.img", kind: "application/octet-stream", content: image}
}

// pushURI returns a URI that the update service has as a property.
func (s *scenario) pushURI(property string) (string, error) {
	r, err := s.get(updateURI)
	if err != nil {
		return "", err
	}
	uri, ok := r.body[property].(string)
	if !ok {
		return "", fmt.Errorf("the update service has no %s: %s", property, r)
	}
	return uri, nil
}

func (s *scenario) pushParts(parts []formPart) error {
	uri, err := s.pushURI("MultipartHttpPushUri")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		disposition := fmt.Sprintf(`form-data; name=%q`, p.name)
		if p.file != "" {
			disposition += fmt.Sprintf(`; filename=%q`, p.file)
		}
		in, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {p.kind}})
		if err != nil {
			return err
		}
		if _, err := in.Write(p.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return s.push(uri, w.FormDataContentType(), b.Bytes())
}

func (s *scenario) push(uri, contentType string, body []byte) error {
	if err := s.unchecked(); err != nil {
		return err
	}
	err := s.send("POST", uri, rawBody(body), "Content-Type", contentType)
	s.lab.Settle()
	s.sent = request{method: "POST", path: uri}
	s.response.checked = s.response.status < 400
	s.saveLocation(s.sent)
	return err
}

// biosFirmware returns a BIOS image of version 2.4.0 for the generic profile.
func biosFirmware() []byte { return firmwareOf("2.4.0") }

func firmwareOf(version string) []byte {
	var b bytes.Buffer
	h := firmware.Image{Kind: "bios", Vendor: "Metalab", Model: "Generic Server G1", Version: version, Lowest: "2.1.0", Released: "2026-02-01"}
	if _, err := firmware.BuildImage(&b, h, strings.NewReader(strings.Repeat("payload ", 1000))); err != nil {
		panic(err) // the image is ours
	}
	return b.Bytes()
}

// damagedFirmware returns the same image with a flipped bit.
func damagedFirmware() []byte {
	image := biosFirmware()
	image[len(image)-5] ^= 1
	return image
}
