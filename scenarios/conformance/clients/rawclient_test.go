package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// rawClient uses a client that can send any request but has no commands for an
// operation. It finds the URIs by reading resources itself, as a person would in a
// browser.
type rawClient struct {
	b            *testServer
	send         func(method, uri string, body any) (map[string]any, error)
	insertedSlot string // URI
}

// read returns a resource, without the client.
func (h *rawClient) read(uri string) (map[string]any, error) {
	req, err := http.NewRequestWithContext(h.b.Context(), http.MethodGet, h.b.server.URL()+uri, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(h.b.lab.Credentials(h.b.server))
	r, err := h.b.lab.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %d %.80s: %w", uri, r.StatusCode, text, err)
	}
	var out map[string]any
	return out, json.Unmarshal(text, &out)
}

// readMembers returns the members of a collection.
func (h *rawClient) readMembers(uri string) (out []map[string]any, err error) {
	list, err := h.read(uri)
	if err != nil {
		return nil, err
	}
	links, _ := list["Members"].([]any)
	for _, m := range links {
		body, err := h.read(link(m))
		if err != nil {
			return nil, err
		}
		out = append(out, body)
	}
	return out, nil
}

// system returns the only system.
func (h *rawClient) system() (map[string]any, error) {
	all, err := h.readMembers("/redfish/v1/Systems")
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("%d systems: %w", len(all), err)
	}
	return all[0], nil
}

func (h *rawClient) slots() ([]map[string]any, error) {
	s, err := h.system()
	if err != nil {
		return nil, err
	}
	if uri := link(s, "VirtualMedia"); uri != "" {
		return h.readMembers(uri)
	}
	managers, err := h.readMembers("/redfish/v1/Managers")
	if err != nil || len(managers) != 1 {
		return nil, fmt.Errorf("%d managers: %w", len(managers), err)
	}
	return h.readMembers(link(managers[0], "VirtualMedia"))
}

func (h *rawClient) insert(image string) error {
	all, err := h.slots()
	if err != nil {
		return err
	}
	err = errors.New("there is no slot for a CD")
	for _, slot := range all {
		types, _ := slot["MediaTypes"].([]any)
		if !slices.Contains(types, any("CD")) && !slices.Contains(types, any("DVD")) {
			continue
		}
		body := map[string]any{"Image": image}
		uri, _ := slot["@odata.id"].(string)
		method, to := "PATCH", uri
		if target, is := at(slot, "Actions", "#VirtualMedia.InsertMedia", "target").(string); is {
			method, to = "POST", target
		}
		if p := h.b.vendor.protocol; p != "" {
			body["TransferProtocolType"] = p
		}
		if h.b.vendor.inserted {
			body["Inserted"] = true
		}
		if _, err = h.send(method, to, body); err == nil {
			h.insertedSlot = uri
			return nil
		}
	}
	return err
}

func (h *rawClient) eject() error {
	slot, err := h.read(h.insertedSlot)
	if err != nil {
		return err
	}
	if target, is := at(slot, "Actions", "#VirtualMedia.EjectMedia", "target").(string); is {
		_, err = h.send("POST", target, map[string]any{})
		return err
	}
	_, err = h.send("PATCH", h.insertedSlot, map[string]any{"Image": nil})
	return err
}

func (h *rawClient) bios() (map[string]any, error) {
	s, err := h.system()
	if err != nil {
		return nil, err
	}
	return h.read(link(s, "Bios"))
}

func (h *rawClient) settings() (map[string]any, error) {
	is, err := h.bios()
	all, _ := is["Attributes"].(map[string]any)
	return all, err
}

func (h *rawClient) set(name, value, when string) error {
	is, err := h.bios()
	if err != nil {
		return err
	}
	body := map[string]any{"Attributes": map[string]any{name: value}}
	if when != "" {
		body["@Redfish.SettingsApplyTime"] = map[string]any{"ApplyTime": when}
	}
	_, err = h.send("PATCH", link(is, "@Redfish.Settings", "SettingsObject"), body)
	return err
}

// store returns the first storage subsystem that creates RAID1 volumes.
func (h *rawClient) store() (map[string]any, error) {
	s, err := h.system()
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	if uri := link(s, "Storage"); uri != "" {
		if all, err = h.readMembers(uri); err != nil {
			return nil, err
		}
	}
	for _, store := range all {
		controllers, _ := store["StorageControllers"].([]any)
		if uri := link(store, "Controllers"); uri != "" {
			more, err := h.readMembers(uri)
			if err != nil {
				return nil, err
			}
			for _, c := range more {
				controllers = append(controllers, c)
			}
		}
		for _, c := range controllers {
			types, _ := at(c, "SupportedRAIDTypes").([]any)
			drives, _ := store["Drives"].([]any)
			if slices.Contains(types, any("RAID1")) && len(drives) > 1 {
				return store, nil
			}
		}
	}
	return nil, errors.New("no subsystem makes mirrors")
}

func (h *rawClient) createMirror(name string) error {
	store, err := h.store()
	if err != nil {
		return err
	}
	links, _ := store["Drives"].([]any)
	var of []drive
	for _, l := range links {
		d, err := h.read(link(l))
		if err != nil {
			return err
		}
		of = append(of, drive{link(l), fmt.Sprint(d["MediaType"], d["Protocol"], d["CapacityBytes"])})
	}
	_, err = h.send("POST", link(store, "Volumes"), newMirror(name, of))
	return err
}

func (h *rawClient) deleteVolumes() error {
	store, err := h.store()
	if err != nil {
		return err
	}
	all, err := h.readMembers(link(store, "Volumes"))
	if err == nil && len(all) == 0 {
		err = errors.New("there are no volumes")
	}
	for _, v := range all {
		if err == nil {
			_, err = h.send("DELETE", fmt.Sprint(v["@odata.id"]), nil)
		}
	}
	return err
}
