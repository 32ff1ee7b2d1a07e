package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Secrets in URIs: a password, which nobody reads, and a query, which users read who may
// change the resource.
const (
	secretPassword = "pa55w0rd"
	secretToken    = "t0ken-of-others"
	secretURI      = "https://user:" + secretPassword + "@images.test/boot/a/live.iso?token=" + secretToken + "&filename=live.iso"
)

// everything reads all resources that a user finds by links, and returns their bodies by
// URI.
func everything(t *testing.T, s *Service, who as) map[string]string {
	t.Helper()
	bodies := map[string]string{}
	todo := []string{"/redfish/v1/"}
	for len(todo) > 0 {
		uri, _, _ := strings.Cut(todo[0], "#")
		todo = todo[1:]
		if _, seen := bodies[uri]; seen || !strings.HasPrefix(uri, "/redfish/v1") {
			continue
		}
		if m := s.tree.Find(&url.URL{Path: uri}); m != nil && m.Raw != nil {
			continue // a document that is the same for all
		}
		w := call(t, s, who, "GET", uri, "")
		bodies[uri] = w.Body.String()
		var body map[string]any
		if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &body) != nil {
			continue
		}
		found, _ := links(body)
		todo = append(todo, found...)
	}
	return bodies
}

// keepSecrets gives a BMC secrets in URIs, in every way that there is.
func keepSecrets(t *testing.T, s *Service, h *host) {
	t.Helper()
	for _, slot := range h.d.BMC.Slots {
		_, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: slot.ID, Image: secretURI, User: "u", Password: secretPassword})
		must(t, err)
	}
	_, err := h.ApplyBMC(t.Context(), bmc.Subscribe{Subscription: bmc.Subscription{
		Destination: strings.Replace(secretURI, "images.test", "hooks.test", 1), Owner: "1", Headers: []bmc.Header{{Name: "X-Key", Value: secretPassword}},
	}})
	must(t, err)
	if err := h.Apply(t.Context(), machine.SetHTTPBoot{URI: secretURI}); err != nil && h.d.Name == generic.Record.Name {
		t.Error(err)
	}
	quoted, err := json.Marshal(fmt.Sprintf(`{"Image":%q}`, secretURI))
	must(t, err)
	slot := h.d.BMC.Slots[0].ID
	h.fetch = func() error { return &bmc.MediaError{Fault: bmc.Absent, Err: errors.New("404 at " + secretURI)} }
	for _, w := range []struct{ method, uri, body string }{
		{"POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", fmt.Sprintf(`{"ImageURI":%q}`, secretURI)},
		{"POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", fmt.Sprintf(`{"ImageURI":"https://images.test/x?token=%s","Username":"u","Password":%q}`, secretToken, secretPassword)},
		{"POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", fmt.Sprintf(`{"ImageURI":"https://images.test/x?token=%s"}`, secretToken)},
		{"POST", sys + "/VirtualMedia/" + slot + "/Actions/VirtualMedia.EjectMedia", ""},
		{"POST", sys + "/VirtualMedia/" + slot + "/Actions/VirtualMedia.InsertMedia", fmt.Sprintf(`{"Image":%q,"Password":%q}`, secretURI, secretPassword)}, // fails
		{"POST", "/redfish/v1/JobService/Jobs", fmt.Sprintf(`{"Payload":{"HttpOperation":"POST","TargetUri":%q,"JsonBody":%s}}`, sys+"/VirtualMedia/"+slot+"/Actions/VirtualMedia.InsertMedia", quoted)},
		{"PATCH", "/redfish/v1/Managers/1/VM1/CfgCD", fmt.Sprintf(`{"Host":"https://images.test","Path":"/boot/a/live.iso?token=%s","Username":"u","Password":%q}`, secretToken, secretPassword)}, // Supermicro
		{"PATCH", "/redfish/v1/Systems/0/Oem/ts_fujitsu/VirtualMedia", fmt.Sprintf(`{"CDImage":{"Server":"images.test","ShareName":"/boot/a","ImageName":"live.iso?token=%s"}}`, secretToken)},    // iRMC
		{"PATCH", "/redfish/v1/Systems/0/Oem/Fsas/VirtualMedia", fmt.Sprintf(`{"CDImage":{"Server":"u:%s@images.test","ShareName":"/boot/a","ImageName":"live.iso?token=%s"}}`, secretToken, secretToken)},
	} {
		if w := call(t, s, "admin", w.method, w.uri, w.body); h.d.Name == generic.Record.Name && w.Code >= 500 {
			t.Errorf("%s", shape("", "", "", w))
		}
	}
	h.carrying.Wait()
	h.fetch = nil
	_, err = h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: slot, Image: secretURI})
	if err != nil && !errors.Is(err, bmc.ErrInUse) {
		t.Fatal(err)
	}
}

// No user reads a password of a URI, and only those who may change a resource read the user
// information and the query of a URI in it: in all dialects, with their OEM resources, tasks,
// logs and jobs.
func TestURISecretsAreHiddenFromUsersWhoMayNotChangeTheResource(t *testing.T) {
	all := append(slices.Clone(vendors), modelsOf{&generic.Record, []string{"generic"}})
	for _, v := range all {
		t.Run(v.record.Name, func(t *testing.T) {
			s, h := newVendorHost(t, v.record, v.profiles[0])
			keepSecrets(t, s, h)
			for _, who := range []as{"admin", "operator", "reader"} {
				shown, hidden := 0, 0
				for uri, body := range everything(t, s, who) {
					if strings.Contains(body, secretPassword) {
						t.Errorf("%s reads a password at %s: %s", who, uri, body)
					}
					if strings.Contains(body, secretToken) {
						shown++
						if who == "reader" || who == "operator" && strings.Contains(uri, "EventService") {
							t.Errorf("%s reads a token at %s: %s", who, uri, body)
						}
					}
					if strings.Contains(body, "live.iso?...") {
						hidden++
					}
				}
				if who == "admin" && shown == 0 || who == "reader" && hidden == 0 {
					t.Errorf("%s: %d resources show a token, and %d hide one: want what was stored", who, shown, hidden)
				}
			}
			for _, query := range []string{"?$expand=*", "?$expand=*($levels=3)", "?$expand=.", "?$select=Image,Boot,Destination,HttpBootUri,Payload"} {
				for _, uri := range []string{"/redfish/v1/Systems", "/redfish/v1/Managers", sys, sys + "/VirtualMedia", "/redfish/v1/EventService/Subscriptions", "/redfish/v1/TaskService/Tasks"} {
					w := call(t, s, "reader", "GET", uri+query, "")
					if strings.Contains(w.Body.String(), secretToken) || strings.Contains(w.Body.String(), secretPassword) {
						t.Errorf("%s", shape("GET", uri+query, "", w))
					}
				}
			}
		})
	}
}

// A resource that comes with an event is as the owner of the subscription may read it.
func TestEventsHideURISecretsFromTheOwnersWhoMayNotReadThem(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	h.service = s
	owners := map[string]string{} // by subscription
	for _, a := range accounts[:3] {
		evs, err := h.ApplyBMC(t.Context(), bmc.Subscribe{Subscription: bmc.Subscription{Destination: "https://hooks.test/" + a.Name, Owner: a.ID, IncludeOriginOfCondition: true}})
		must(t, err)
		owners[resource.SubscriptionID(evs)] = a.Name
	}
	_, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: "Cd", Image: secretURI, User: "u", Password: secretPassword})
	must(t, err)
	must(t, h.Apply(t.Context(), machine.SetHTTPBoot{URI: secretURI}))
	reads := map[string]bool{}
	for _, d := range h.posted {
		body, who := string(d.Body), owners[d.Subscription]
		if strings.Contains(body, secretPassword) {
			t.Errorf("%s gets a password: %s", who, body)
		}
		if strings.Contains(body, secretToken) {
			reads[who] = true
		} else if strings.Contains(body, "live.iso?...") {
			reads[who+", hidden"] = true
		}
	}
	if !reads["admin"] || reads["reader"] || !reads["reader, hidden"] {
		t.Errorf("tokens in events: %v, want them for the administrator, and hidden from the reader", reads)
	}
}

// The owner of a subscription, who may change it, reads its destination.
func TestOwnerReadsTheDestinationOfASubscription(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	const to = "https://hooks.test/a?token=" + secretToken
	evs, err := h.ApplyBMC(t.Context(), bmc.Subscribe{Subscription: bmc.Subscription{Destination: to, Owner: "3", Headers: []bmc.Header{{Name: "X-Key", Value: secretPassword}}}})
	must(t, err)
	uri := "/redfish/v1/EventService/Subscriptions/" + resource.SubscriptionID(evs)
	for who, want := range map[as]string{"reader": to, "admin": to, "operator": "https://hooks.test/a?..."} {
		w := call(t, s, who, "GET", uri, "")
		body := decoded(t, w)
		headers, _ := json.Marshal(body["HttpHeaders"])
		if body["Destination"] != want || string(headers) != "[]" { // DSP2046: "null or an empty array"
			t.Errorf("%s: Destination %v, HttpHeaders %s, want %s and none", who, body["Destination"], headers, want)
		}
	}
}
