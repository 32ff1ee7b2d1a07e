package steps

import (
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

// liveImageMark is how an image begins that the rack's servers boot, and
// liveImage is one.
const liveImageMark = "bootable image\n"

var liveImage = liveImageMark + strings.Repeat("live system ", 1000)

// images is a server of images, which starts when it is first needed.
type images struct {
	server *httptest.Server
	secure *httptest.Server // serves the same images over HTTPS
	files  map[string][]byte
}

// url returns the URL of an image, which is served from then on; content nil is
// an image that the server does not have.
func (i *images) url(name string, content []byte) string {
	if i.server == nil {
		i.files = map[string][]byte{}
		i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			content, ok := i.files[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(content) // a BMC may go away
		}))
	}
	if content != nil {
		i.files["/"+name] = content
	}
	return i.server.URL + "/" + name
}

// secureURL returns the URL of the same image by HTTPS.
func (i *images) secureURL(name string, content []byte) string {
	i.url(name, content)
	if i.secure == nil {
		i.secure = httptest.NewTLSServer(i.server.Config.Handler)
	}
	return i.secure.URL + "/" + name
}

// certificate returns the certificate of the server by HTTPS, in PEM.
func (i *images) certificate() string {
	i.secureURL("", nil)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.secure.Certificate().Raw}))
}

func (i *images) close() {
	if i.secure != nil {
		i.secure.Close()
	}
	if i.server != nil {
		i.server.Close()
	}
}

func (s *scenario) registerMedia(sc *stepRegistry) {
	sc.Step(`^the server's virtual CD has the bytes of the image$`, func() error {
		m, ok := s.server(1).Media("Cd")
		if !ok {
			return errors.New("the virtual CD has no medium")
		}
		defer m.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, m); err != nil {
			return err
		}
		return equal("the SHA-256 of the image", fmt.Sprintf("%x", sum.Sum(nil)), fmt.Sprintf("%x", sha256.Sum256([]byte(liveImage))))
	})
}
