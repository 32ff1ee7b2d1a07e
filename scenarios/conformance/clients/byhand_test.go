package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// byHand is how a client is used that asks for whatever one types: the one who
// types has seen the addresses before, in his browser.
type byHand struct {
	b    *bench
	does func(method, uri string, body any) (map[string]any, error)
	slot string // that has the image
}

// see reads a resource without the client.
func (h *byHand) see(uri string) (map[string]any, error) {
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

// all are those of a collection.
func (h *byHand) all(uri string) (out []map[string]any, err error) {
	list, err := h.see(uri)
	if err != nil {
		return nil, err
	}
	links, _ := list["Members"].([]any)
	for _, m := range links {
		body, err := h.see(link(m))
		if err != nil {
			return nil, err
		}
		out = append(out, body)
	}
	return out, nil
}

// system is the one that there is.
func (h *byHand) system() (map[string]any, error) {
	all, err := h.all("/redfish/v1/Systems")
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("%d systems: %w", len(all), err)
	}
	return all[0], nil
}

func (h *byHand) slots() ([]map[string]any, error) {
	s, err := h.system()
	if err != nil {
		return nil, err
	}
	if uri := link(s, "VirtualMedia"); uri != "" {
		return h.all(uri)
	}
	managers, err := h.all("/redfish/v1/Managers")
	if err != nil || len(managers) != 1 {
		return nil, fmt.Errorf("%d managers: %w", len(managers), err)
	}
	return h.all(link(managers[0], "VirtualMedia"))
}

func (h *byHand) insert(image string) error {
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
		if p := h.b.habit.protocol; p != "" {
			body["TransferProtocolType"] = p
		}
		if h.b.habit.inserted {
			body["Inserted"] = true
		}
		if _, err = h.does(method, to, body); err == nil {
			h.slot = uri
			return nil
		}
	}
	return err
}

func (h *byHand) eject() error {
	slot, err := h.see(h.slot)
	if err != nil {
		return err
	}
	if target, is := at(slot, "Actions", "#VirtualMedia.EjectMedia", "target").(string); is {
		_, err = h.does("POST", target, map[string]any{})
		return err
	}
	_, err = h.does("PATCH", h.slot, map[string]any{"Image": nil})
	return err
}

func (h *byHand) bios() (map[string]any, error) {
	s, err := h.system()
	if err != nil {
		return nil, err
	}
	return h.see(link(s, "Bios"))
}

func (h *byHand) settings() (map[string]any, error) {
	is, err := h.bios()
	all, _ := is["Attributes"].(map[string]any)
	return all, err
}

func (h *byHand) set(name, value, when string) error {
	is, err := h.bios()
	if err != nil {
		return err
	}
	body := map[string]any{"Attributes": map[string]any{name: value}}
	if when != "" {
		body["@Redfish.SettingsApplyTime"] = map[string]any{"ApplyTime": when}
	}
	_, err = h.does("PATCH", link(is, "@Redfish.Settings", "SettingsObject"), body)
	return err
}

// store is the first storage that makes mirrors.
func (h *byHand) store() (map[string]any, error) {
	s, err := h.system()
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	if uri := link(s, "Storage"); uri != "" {
		if all, err = h.all(uri); err != nil {
			return nil, err
		}
	}
	for _, store := range all {
		controllers, _ := store["StorageControllers"].([]any)
		if uri := link(store, "Controllers"); uri != "" {
			more, err := h.all(uri)
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

func (h *byHand) mirror(name string) error {
	store, err := h.store()
	if err != nil {
		return err
	}
	links, _ := store["Drives"].([]any)
	var of []drive
	for _, l := range links {
		d, err := h.see(link(l))
		if err != nil {
			return err
		}
		of = append(of, drive{link(l), fmt.Sprint(d["MediaType"], d["Protocol"], d["CapacityBytes"])})
	}
	_, err = h.does("POST", link(store, "Volumes"), newMirror(name, of))
	return err
}

func (h *byHand) unmake() error {
	store, err := h.store()
	if err != nil {
		return err
	}
	all, err := h.all(link(store, "Volumes"))
	if err == nil && len(all) == 0 {
		err = errors.New("there are no volumes")
	}
	for _, v := range all {
		if err == nil {
			_, err = h.does("DELETE", fmt.Sprint(v["@odata.id"]), nil)
		}
	}
	return err
}
