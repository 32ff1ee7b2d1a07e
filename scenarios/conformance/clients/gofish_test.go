package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"
)

// allOperations are the names of all operations.
var allOperations = []string{"inventory", "power", "boot", "media", "bios", "raid"}

func TestGofishManagesEveryModel(t *testing.T) {
	runOnModels(t, "gofish", allOperations, func(b *testServer) client { return &gofishClient{b: b, c: connectGofish(b)} })
}

// connectGofish returns a gofish client of the server's BMC.
func connectGofish(b *testServer) *gofish.APIClient {
	b.Helper()
	user, password := b.lab.Credentials(b.server)
	c, err := gofish.ConnectContext(b.Context(), gofish.ClientConfig{
		Endpoint: b.server.URL(), Username: user, Password: password, HTTPClient: b.lab.Client, BasicAuth: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// gofishClient implements client with gofish.
type gofishClient struct {
	b            *testServer
	c            *gofish.APIClient
	insertedSlot *schemas.VirtualMedia
}

func (f *gofishClient) system() (*schemas.ComputerSystem, error) {
	all, err := f.c.Service.Systems()
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("%d systems: %w", len(all), err)
	}
	return all[0], nil
}

func (f *gofishClient) inventory() (inventory, error) {
	s, err := f.system()
	if err != nil {
		return inventory{}, err
	}
	drives := 0
	stores, err := s.Storage()
	if err != nil {
		return inventory{}, err
	}
	for _, store := range stores {
		all, err := store.Drives()
		if err != nil {
			return inventory{}, err
		}
		drives += len(all)
	}
	nics, err := s.EthernetInterfaces()
	count := len(nics)
	return inventory{Serials: []string{s.SerialNumber, s.SKU}, Power: string(s.PowerState), Drives: &drives, NICs: &count}, err
}

func (f *gofishClient) reset(kind string) error {
	s, err := f.system()
	if err == nil {
		_, err = s.Reset(schemas.ResetType(kind))
	}
	return err
}

func (f *gofishClient) boot(target, mode string) error {
	s, err := f.system()
	if err != nil {
		return err
	}
	return s.SetBoot(&schemas.Boot{
		BootSourceOverrideTarget: schemas.BootSource(target), BootSourceOverrideMode: schemas.BootSourceOverrideMode(mode),
		BootSourceOverrideEnabled: schemas.OnceBootSourceOverrideEnabled,
	})
}

// slots returns the virtual media of the system, or else of its managers.
func (f *gofishClient) slots() ([]*schemas.VirtualMedia, error) {
	s, err := f.system()
	if err != nil {
		return nil, err
	}
	all, err := s.VirtualMedia()
	if err != nil || len(all) > 0 {
		return all, err
	}
	managers, err := f.c.Service.Managers()
	if err != nil {
		return nil, err
	}
	for _, m := range managers {
		more, err := m.VirtualMedia()
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// insert tries each slot for CDs until one accepts the image.
func (f *gofishClient) insert(image string) error {
	all, err := f.slots()
	if err != nil {
		return err
	}
	err = errors.New("there is no slot for a CD")
	for _, slot := range all {
		if !takesCD(slot.MediaTypes) {
			continue
		}
		p := &schemas.VirtualMediaInsertMediaParameters{Image: image}
		if x := schemas.TransferProtocolType(f.b.vendor.protocol); x != "" {
			p.TransferProtocolType = &x
		}
		if f.b.vendor.inserted {
			p.Inserted = new(true)
		}
		if _, err = slot.InsertMedia(p); err == nil {
			f.insertedSlot = slot
			return nil
		}
	}
	return err
}

func takesCD[T ~string](types []T) bool {
	for _, t := range types {
		if t == "CD" || t == "DVD" {
			return true
		}
	}
	return false
}

func (f *gofishClient) eject() error {
	slot, err := schemas.GetObject[schemas.VirtualMedia](f.c, f.insertedSlot.ODataID)
	if err == nil {
		_, err = slot.EjectMedia()
	}
	return err
}

func (f *gofishClient) bios() (*schemas.Bios, error) {
	s, err := f.system()
	if err != nil {
		return nil, err
	}
	b, err := s.Bios()
	if err == nil && b == nil {
		err = errors.New("the system has no BIOS")
	}
	return b, err
}

func (f *gofishClient) settings() (map[string]any, error) {
	b, err := f.bios()
	if err != nil {
		return nil, err
	}
	return b.Attributes, nil
}

func (f *gofishClient) set(name, value, when string) error {
	b, err := f.bios()
	if err != nil {
		return err
	}
	return b.UpdateBiosAttributesApplyAt(schemas.SettingsAttributes{name: value}, schemas.SettingsApplyTime(when))
}

// store returns the first storage subsystem that creates RAID1 volumes.
func (f *gofishClient) store() (*schemas.Storage, error) {
	s, err := f.system()
	if err != nil {
		return nil, err
	}
	all, err := s.Storage()
	if err != nil {
		return nil, err
	}
	// gofish reads them concurrently, and lists them as they arrive.
	slices.SortFunc(all, func(a, b *schemas.Storage) int { return strings.Compare(a.ODataID, b.ODataID) })
	for _, store := range all {
		var types []schemas.RAIDType
		for _, c := range store.StorageControllers { //nolint:staticcheck // BMCs of older vendors have no Controllers
			types = append(types, c.SupportedRAIDTypes...)
		}
		controllers, err := store.Controllers()
		if err != nil {
			return nil, err
		}
		for _, c := range controllers {
			types = append(types, c.SupportedRAIDTypes...)
		}
		if slices.Contains(types, schemas.RAID1RAIDType) && store.DrivesCount > 1 {
			return store, nil
		}
	}
	return nil, errors.New("no subsystem makes mirrors")
}

// createMirror posts to the collection of volumes, whose URI it takes from the raw
// body: gofish has neither a method for it nor the URI.
func (f *gofishClient) createMirror(name string) error {
	s, err := f.store()
	if err != nil {
		return err
	}
	drives, err := s.Drives()
	if err != nil {
		return err
	}
	of := make([]drive, len(drives))
	for i, d := range drives {
		if d.CapacityBytes == nil {
			return fmt.Errorf("%s has no capacity", d.ODataID)
		}
		of[i] = drive{d.ODataID, fmt.Sprint(d.MediaType, d.Protocol, *d.CapacityBytes)}
	}
	var at struct{ Volumes schemas.Link }
	if err := json.Unmarshal(s.RawData, &at); err != nil {
		return err
	}
	return done(f.c.Post(at.Volumes.String(), newMirror(name, of)))
}

func (f *gofishClient) deleteVolumes() error {
	s, err := f.store()
	if err != nil {
		return err
	}
	all, err := s.Volumes()
	if err == nil && len(all) == 0 {
		err = errors.New("there are no volumes")
	}
	for _, v := range all {
		if err == nil {
			err = done(f.c.Delete(v.ODataID))
		}
	}
	return err
}

// done drains and closes a response.
func done(r *http.Response, err error) error {
	if err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return err
}

func (f *gofishClient) raw(method, uri string, body any) (map[string]any, error) {
	send := map[string]func() (*http.Response, error){
		"GET":    func() (*http.Response, error) { return f.c.Get(uri) },
		"POST":   func() (*http.Response, error) { return f.c.Post(uri, body) },
		"DELETE": func() (*http.Response, error) { return f.c.Delete(uri) },
		"PATCH": func() (*http.Response, error) {
			is, err := f.c.Get(uri)
			if err != nil {
				return nil, err
			}
			_ = done(is, nil)
			headers := map[string]string{}
			if tag := is.Header.Get("ETag"); tag != "" {
				headers["If-Match"] = tag
			}
			return f.c.PatchWithHeaders(uri, body, headers)
		},
	}[method]
	r, err := send()
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasPrefix(string(text), "{") {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(text, &out)
}
