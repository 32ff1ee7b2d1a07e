package steps

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/cucumber/godog"
)

// bootable is how an image begins that the rack's servers can boot.
const bootable = "bootable image\n"

// images is a server of images; it serves from the first time that it is
// needed.
type images struct {
	server *httptest.Server
	secure *httptest.Server // of the same images, with HTTPS
	files  map[string][]byte
	asked  int
}

// url is the address of an image, which is there from then on.
func (i *images) url(name string, content []byte) string {
	if i.server == nil {
		i.files = map[string][]byte{}
		i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			i.asked++
			content, ok := i.files[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(content) // a BMC that goes away does not matter
		}))
	}
	if content != nil {
		i.files["/"+name] = content
	}
	return i.server.URL + "/" + name
}

// secureURL is the address of the same image with HTTPS.
func (i *images) secureURL(name string, content []byte) string {
	i.url(name, content)
	if i.secure == nil {
		i.secure = httptest.NewTLSServer(i.server.Config.Handler)
	}
	return i.secure.URL + "/" + name
}

func (i *images) close() {
	if i.secure != nil {
		i.secure.Close()
	}
	if i.server != nil {
		i.server.Close()
	}
}

const slotURI = systemURI + "/VirtualMedia/Cd"

func (s *scenario) registerMedia(sc *godog.ScenarioContext) {
	live := []byte(bootable + strings.Repeat("live system ", 1000))
	insert := func(name string, content []byte) error {
		err := s.send("POST", slotURI+"/Actions/VirtualMedia.InsertMedia", object{"Image": s.images.url(name, content)})
		s.lab.Settle()
		return err
	}
	sc.Step(`^the operator inserts (?:a live image|another image) into the virtual CD$`, func() error { return insert("live.iso", live) })
	sc.Step(`^the operator inserts an image that no server has$`, func() error { return insert("none.iso", nil) })
	sc.Step(`^the virtual CD holds the image, byte by byte$`, func() error {
		a, err := s.get(slotURI)
		if err != nil {
			return err
		}
		if a.body["Inserted"] != true {
			return fmt.Errorf("nothing is inserted: %s", a)
		}
		m, ok := s.server(1).Media("Cd")
		if !ok {
			return fmt.Errorf("the server sees no image")
		}
		defer m.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, m); err != nil {
			return err
		}
		return equal("the image", fmt.Sprintf("%x", sum.Sum(nil)), fmt.Sprintf("%x", sha256.Sum256(live)))
	})
	sc.Step(`^the operator ejects the virtual CD$`, func() error { return s.sendOK("POST", slotURI+"/Actions/VirtualMedia.EjectMedia", object{}) })
	sc.Step(`^the virtual CD is empty$`, func() error {
		a, err := s.get(slotURI)
		if err != nil {
			return err
		}
		return equal("Image", a.body["Image"], nil)
	})
}
