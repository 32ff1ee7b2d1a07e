package redfish_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The handlers of the test server that change state: power, boot, media.

var (
	enableds = []string{"Once", "Continuous", "Disabled"}
	targets  = []string{"None", "Pxe", "Cd", "Hdd", "UefiHttp"}
	modes    = []string{"UEFI", "Legacy"}
)

func (s *server) bootProperty() map[string]any {
	return map[string]any{
		"BootSourceOverrideEnabled": s.enabled, "BootSourceOverrideEnabled@Redfish.AllowableValues": enableds,
		"BootSourceOverrideTarget": s.target, "BootSourceOverrideTarget@Redfish.AllowableValues": targets,
		"BootSourceOverrideMode": s.mode, "BootSourceOverrideMode@Redfish.AllowableValues": modes,
		"HttpBootUri": s.httpURI,
	}
}

// setBoot writes all properties of Boot or none.
func (s *server) setBoot(body map[string]any) []string {
	boot, ok := body["Boot"].(map[string]any)
	if !ok || len(body) != 1 {
		return []string{"PropertyUnknown", fmt.Sprint(body)}
	}
	next := map[string]*string{}
	for name, p := range map[string]struct {
		allowed []string
		to      *string
	}{
		"BootSourceOverrideEnabled": {enableds, &s.enabled},
		"BootSourceOverrideTarget":  {targets, &s.target},
		"BootSourceOverrideMode":    {modes, &s.mode},
		"HttpBootUri":               {nil, &s.httpURI},
	} {
		v, there := boot[name]
		if !there {
			continue
		}
		delete(boot, name)
		text, ok := v.(string)
		if !ok || p.allowed != nil && !slices.Contains(p.allowed, text) {
			return []string{"PropertyValueNotInList", fmt.Sprint(v), name}
		}
		next[text] = p.to
	}
	for name := range boot {
		return []string{"PropertyUnknown", name}
	}
	for text, to := range next {
		*to = text
	}
	return nil
}

func (s *server) reset(w http.ResponseWriter, r *http.Request) {
	body, ok := object(w, r)
	if !ok {
		return
	}
	kind, _ := body["ResetType"].(string)
	if len(body) != 1 || !slices.Contains(s.resets, kind) {
		fail(w, http.StatusBadRequest, "ActionParameterValueNotInList", "The value "+kind+" for the parameter ResetType is not in the list of acceptable values.", kind, "ResetType", "Reset")
		return
	}
	on := s.power == "On" || s.power == "PoweringOn"
	to, via := "On", "PoweringOn"
	switch kind {
	case "On", "ForceOn":
		if on {
			fail(w, http.StatusConflict, "ResourceInUse", "The system is on already.")
			return
		}
	case "PushPowerButton":
		if on {
			to, via = "Off", "PoweringOff"
		}
	case "ForceOff", "GracefulShutdown":
		if s.power == "Off" {
			fail(w, http.StatusConflict, "ResourceInUse", "The system is off already.")
			return
		}
		to, via = "Off", "PoweringOff"
	case "ForceRestart", "PowerCycle":
		if !on {
			fail(w, http.StatusBadRequest, "InvalidOperationForSystemState", "The operation failed due to the power state of the system.")
			return
		}
	}
	s.power = to
	if s.slow && kind != "ForceOff" {
		s.power = via
	}
	if to == "On" && s.enabled == "Once" {
		s.enabled, s.target = "Disabled", "None"
	}
	w.WriteHeader(http.StatusNoContent)
}

// mediaRoutes adds the resources of a floppy and a CD drive.
func (s *server) mediaRoutes(routes map[string]http.HandlerFunc, path string) {
	routes["GET "+path] = s.show(collection(path, "1", "2"))
	routes["GET "+path+"/1"] = s.show(func() map[string]any {
		return map[string]any{"@odata.id": path + "/1", "MediaTypes": []string{"Floppy", "USBStick"}, "Image": nil, "Inserted": false}
	})
	cd := func() map[string]any {
		m := map[string]any{
			"@odata.id": path + "/2", "@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia",
			"MediaTypes": []string{"CD", "DVD"}, "Image": nil, "Inserted": s.image != "", "ConnectedVia": "NotConnected",
		}
		if s.image != "" {
			m["Image"], m["ConnectedVia"] = s.image, "URI"
		}
		if !s.noActions {
			m["Actions"] = map[string]any{
				"#VirtualMedia.InsertMedia": map[string]any{"target": path + "/2/Actions/VirtualMedia.InsertMedia"},
				"#VirtualMedia.EjectMedia":  map[string]any{"target": path + "/2/Actions/VirtualMedia.EjectMedia"},
			}
		}
		return m
	}
	routes["GET "+path+"/2"] = s.show(cd)
	if s.noActions {
		routes["PATCH "+path+"/2"] = s.change(cd, func(body map[string]any) []string {
			if _, ok := body["Inserted"]; !ok {
				return []string{"PropertyMissing", "Inserted"}
			}
			if body["Inserted"] == false {
				s.image = ""
				return nil
			}
			return s.insert(body)
		})
		return
	}
	routes["POST "+path+"/2/Actions/VirtualMedia.InsertMedia"] = s.action(func(body map[string]any) []string {
		if s.image != "" {
			return []string{"ResourceInUse"}
		}
		return s.insert(body)
	})
	routes["POST "+path+"/2/Actions/VirtualMedia.EjectMedia"] = s.action(func(body map[string]any) []string {
		if s.image == "" {
			return []string{"ResourceInUse"}
		}
		s.image = ""
		return nil
	})
}

func (s *server) insert(body map[string]any) []string {
	for name := range body {
		if !slices.Contains([]string{"Image", "Inserted", "WriteProtected", "TransferMethod", "TransferProtocolType", "UserName", "Password"}, name) {
			return []string{"ActionParameterUnknown", name}
		}
	}
	image, _ := body["Image"].(string)
	if strings.Contains(image, "missing") {
		return []string{"ResourceAtUriInUnknownFormat", image}
	}
	s.image = image
	return nil
}

// action returns a handler for an action, which runs at once or after s.pending
// polls. Like an iDRAC it refuses If-Match.
func (s *server) action(run func(body map[string]any) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := object(w, r)
		if !ok {
			return
		}
		if r.Header.Get("If-Match") != "" {
			fail(w, http.StatusPreconditionFailed, "PreconditionFailed", "An action has no ETag.")
			return
		}
		finish := func(w http.ResponseWriter) {
			if refused := run(body); refused != nil {
				fail(w, http.StatusBadRequest, refused[0], refused[0]+" "+strings.Join(refused[1:], " "), refused[1:]...)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		}
		if !s.async {
			finish(w)
			return
		}
		const monitor = "/redfish/v1/TaskService/TaskMonitors/1"
		polls := s.pending
		s.routes["GET "+monitor] = func(w http.ResponseWriter, _ *http.Request) {
			if polls--; polls >= 0 {
				accepted(w, monitor)
				return
			}
			delete(s.routes, "GET "+monitor)
			finish(w)
		}
		accepted(w, monitor)
	}
}

func accepted(w http.ResponseWriter, monitor string) {
	w.Header().Set("Location", monitor)
	w.Header().Set("Retry-After", "7")
	reply(w, http.StatusAccepted, map[string]any{
		"@odata.id": "/redfish/v1/TaskService/Tasks/1", "@odata.type": "#Task.v1_7_0.Task", "TaskState": "Running",
	})
}
