package steps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/textproto"

	"github.com/cucumber/godog"
)

// part is a part of a push.
type part struct {
	name, file, kind string
	content          []byte
}

func (s *scenario) registerPushes(sc *godog.ScenarioContext) {
	// to is an address that the update service tells.
	to := func(name string) (string, error) {
		a, err := s.get(updateURI)
		if err != nil {
			return "", err
		}
		uri, ok := a.body[name].(string)
		if !ok {
			return "", fmt.Errorf("the service has no %s: %s", name, a)
		}
		return uri, nil
	}
	push := func(uri, kind string, body []byte) error {
		err := s.send("POST", uri, rawBody(body), "Content-Type", kind)
		s.saved["monitor"], s.saved["task"] = s.response.header.Get("Location"), fmt.Sprint(s.response.body["@odata.id"])
		s.lab.Settle()
		return err
	}
	parts := func(all ...part) error {
		uri, err := to("MultipartHttpPushUri")
		if err != nil {
			return err
		}
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for _, p := range all {
			at := fmt.Sprintf(`form-data; name=%q`, p.name)
			if p.file != "" {
				at += fmt.Sprintf(`; filename=%q`, p.file)
			}
			in, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {at}, "Content-Type": {p.kind}})
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
		return push(uri, w.FormDataContentType(), b.Bytes())
	}
	parameters := func(v object) (part, error) {
		b, err := json.Marshal(v)
		return part{name: "UpdateParameters", kind: "application/json", content: b}, err
	}
	file := func(image []byte) part {
		return part{name: "UpdateFile", file: "bios.img", kind: "application/octet-stream", content: image}
	}
	with := func(v object, damage bool) error {
		image, err := biosImage()
		if err != nil {
			return err
		}
		if damage {
			image[len(image)-5] ^= 1
		}
		p, err := parameters(v)
		if err != nil {
			return err
		}
		return parts(p, file(image))
	}
	bios := object{"Targets": []string{updateURI + "/FirmwareInventory/BIOS"}}
	sc.Step(`^the operator pushes an update of the BIOS with what is to become of it$`, func() error { return with(bios, false) })
	sc.Step(`^the operator pushes a damaged update of the BIOS with what is to become of it$`, func() error { return with(bios, true) })
	sc.Step(`^the operator pushes an update of the BIOS that is to be for the BMC$`, func() error {
		return with(object{"Targets": []string{updateURI + "/FirmwareInventory/BMC"}}, false)
	})
	sc.Step(`^the operator pushes an update of the BIOS as it is$`, func() error {
		image, err := biosImage()
		if err != nil {
			return err
		}
		uri, err := to("HttpPushUri")
		if err != nil {
			return err
		}
		return push(uri, "application/octet-stream", image)
	})
	sc.Step(`^the operator pushes what is to become of an update, and no update$`, func() error {
		p, err := parameters(bios)
		if err != nil {
			return err
		}
		return parts(p)
	})
	sc.Step(`^the operator pushes an update of the BIOS without what is to become of it$`, func() error {
		image, err := biosImage()
		if err != nil {
			return err
		}
		return parts(file(image))
	})
}
