package redfish_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
)

const (
	mediaPath  = systemPath + "/VirtualMedia"
	insertPath = mediaPath + "/2/Actions/VirtualMedia.InsertMedia"
	ejectPath  = mediaPath + "/2/Actions/VirtualMedia.EjectMedia"
	imageA     = "http://images.example/a.iso"
	imageB     = "https://images.example/b.iso"
)

// insertMedia inserts an image and checks what the drive holds.
func (s *server) insertMedia(c bmc.Client, image string) {
	s.t.Helper()
	if err := c.InsertMedia(s.t.Context(), image); err != nil {
		s.t.Fatalf("InsertMedia(%s) error = %v", image, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.image != image {
		s.t.Errorf("the BMC has %q after InsertMedia(%s)", s.image, image)
	}
}

func TestInsertMediaSendsFewRequests(t *testing.T) {
	s := newServer(t)
	c := s.open()
	if _, err := c.Media(t.Context()); err != nil {
		t.Fatalf("Media() error = %v", err)
	}
	s.wantRequests("GET "+systemPath, "GET "+mediaPath, "GET "+mediaPath+"/1", "GET "+mediaPath+"/2")
	s.forget()
	s.insertMedia(c, imageA)
	s.wantRequests("GET "+mediaPath+"/2", "POST "+insertPath, "GET "+mediaPath+"/2")
	if diff := cmp.Diff([]string{`{"Image":"` + imageA + `"}`}, s.sent()); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	s.forget()
	s.insertMedia(c, imageA)
	s.wantRequests("GET " + mediaPath + "/2")
	s.forget()
	s.insertMedia(c, imageB)
	s.wantRequests("GET "+mediaPath+"/2", "POST "+ejectPath, "GET "+mediaPath+"/2", "POST "+insertPath, "GET "+mediaPath+"/2")
}

// Services differ on the parameters that they require and refuse.
func TestInsertMediaParameters(t *testing.T) {
	for _, tt := range []struct {
		name   string
		refuse func(body string) (id, argument string)
		tries  int
	}{
		{"Supermicro knows the image alone", func(body string) (string, string) {
			if strings.Contains(body, "Inserted") {
				return "ActionParameterUnknown", "Inserted"
			}
			return "", ""
		}, 1},
		{"it wants to know that it is inserted", func(body string) (string, string) {
			if !strings.Contains(body, `"Inserted":true`) {
				return "ActionParameterMissing", "Inserted"
			}
			return "", ""
		}, 2},
		{"as GeneralError", func(body string) (string, string) {
			if !strings.Contains(body, "WriteProtected") {
				return "GeneralError", ""
			}
			return "", ""
		}, 2},
		{"as another message", func(body string) (string, string) {
			if !strings.Contains(body, "WriteProtected") {
				return "OemRefused", "#/WriteProtected"
			}
			return "", ""
		}, 2},
		{"DGX requires the transfer", func(body string) (string, string) {
			if !strings.Contains(body, `"TransferMethod":"Stream","TransferProtocolType":"HTTPS"`) {
				return "ActionParameterMissing", "TransferProtocolType"
			}
			return "", ""
		}, 3},
		{"DGX requires an account", func(body string) (string, string) {
			if !strings.Contains(body, `"UserName":""`) {
				return "ActionParameterMissing", "UserName"
			}
			return "", ""
		}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			c := s.open()
			s.wrap("POST "+insertPath, func(next http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if id, argument := tt.refuse(string(body)); id != "" {
						fail(w, http.StatusBadRequest, id, "no", argument)
						return
					}
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					next(w, r)
				}
			})
			s.insertMedia(c, imageB)
			if got := s.count("POST " + insertPath); got != tt.tries {
				t.Errorf("InsertMedia() takes %d tries, want %d", got, tt.tries)
			}
			if err := c.EjectMedia(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.forget()
			s.insertMedia(c, imageB)
			if got := s.count("POST " + insertPath); got != 1 {
				t.Errorf("InsertMedia() takes %d tries the next time, want 1", got)
			}
		})
	}

	// A refusal of the image itself is not retried with other parameters.
	s := newServer(t)
	c := s.open()
	err := c.InsertMedia(t.Context(), "http://images.example/missing.iso")
	if err == nil || !strings.Contains(err.Error(), "ResourceAtUriInUnknownFormat") || s.count("POST "+insertPath) != 1 {
		t.Errorf("InsertMedia(missing) error = %v after %d tries, want what the BMC says after one", err, s.count("POST "+insertPath))
	}
}

// A session that has ended may still hold a drive that looks empty (iDRAC:
// VRM0012).
func TestInsertMediaRetriesADriveInUse(t *testing.T) {
	s := newServer(t)
	c := s.open()
	held := true
	s.wrap("POST "+insertPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if held {
				fail(w, http.StatusInternalServerError, "VRM0012", "The Virtual Media image server is already connected.")
				return
			}
			next(w, r)
		}
	})
	s.route("POST "+ejectPath, func(w http.ResponseWriter, _ *http.Request) {
		held = false
		w.WriteHeader(http.StatusNoContent)
	})
	s.insertMedia(c, imageA)
}

// Slots for the remote console: one without the action, one that refuses it.
func TestInsertMediaSkipsUnusableSlots(t *testing.T) {
	s := newServer(t)
	s.route("GET "+mediaPath, s.show(collection(mediaPath, "console", "dead", "2")))
	s.route("GET "+mediaPath+"/console", s.show(func() map[string]any {
		return map[string]any{"MediaTypes": []string{"CD"}, "Inserted": false}
	}))
	s.route("GET "+mediaPath+"/dead", s.show(func() map[string]any {
		return map[string]any{"MediaTypes": []string{"DVD"}, "Inserted": false, "Actions": map[string]any{
			"#VirtualMedia.InsertMedia": map[string]any{"target": mediaPath + "/dead"},
		}}
	}))
	c := s.open()
	s.insertMedia(c, imageA)
	if got, err := c.Media(t.Context()); err != nil || got.Image != imageA {
		t.Errorf("Media() = %+v, %v, want the drive that took the image", got, err)
	}

	s.route("GET "+mediaPath, s.show(collection(mediaPath, "dead")))
	c = s.open()
	if err := c.InsertMedia(t.Context(), imageA); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("InsertMedia() error = %v without a slot that works, want ErrUnsupported", err)
	}
}

// Virtual media may move with an update, belong to managers that the system does
// not link, or be missing.
func TestVirtualMediaIsFound(t *testing.T) {
	s := newServer(t)
	c := s.open()
	s.insertMedia(c, imageA)
	s.mu.Lock()
	s.mediaAt = "Managers/1"
	for _, old := range []string{"", "/1", "/2"} {
		delete(s.routes, "GET "+mediaPath+old)
	}
	s.mediaRoutes(s.routes, "/redfish/v1/Managers/1/VirtualMedia")
	s.system["Links"] = map[string]any{}
	s.mu.Unlock()
	if got, err := c.Media(t.Context()); err != nil || got.Image != imageA {
		t.Errorf("Media() = %+v, %v after it moved", got, err)
	}

	s = newServer(t, func(s *server) { s.mediaAt = "nowhere" })
	c = s.open()
	if _, err := c.Media(t.Context()); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("Media() error = %v without virtual media, want ErrUnsupported", err)
	}
}

func TestMediaReadsImageAndInserted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		drive map[string]any
		want  bmc.Media
	}{
		{"Supermicro keeps the image after an eject", map[string]any{"Image": imageA, "Inserted": false}, bmc.Media{}},
		{"iLO has an empty text", map[string]any{"Image": "", "Inserted": false}, bmc.Media{}},
		{"no Inserted", map[string]any{"Image": imageA}, bmc.Media{Image: imageA, Inserted: true}},
		{"nothing", map[string]any{"Image": nil}, bmc.Media{}},
	} {
		s := newServer(t)
		tt.drive["MediaTypes"] = []string{"CD"}
		s.route("GET "+mediaPath+"/2", s.show(func() map[string]any { return tt.drive }))
		if got, err := s.open().Media(t.Context()); err != nil || got != tt.want {
			t.Errorf("%s: Media() = %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

// Tasks: how their end is seen, and how failures are.
func TestInsertMediaAwaitsItsTask(t *testing.T) {
	const location = "/redfish/v1/TaskService/Tasks/7"
	task := func(state string) map[string]any {
		return map[string]any{"@odata.type": "#Task.v1_4_0.Task", "@odata.id": location, "TaskState": state,
			"Messages": []any{map[string]any{"Message": "Cannot reach the image."}}}
	}
	for _, tt := range []struct {
		name   string
		header string                                        // Location
		body   map[string]any                                // body of the 202
		poll   func(s *server, n int, w http.ResponseWriter) // n counts from 1
		err    string                                        // "" is success
		waited time.Duration
	}{
		{
			name: "monitor", header: location,
			poll: func(s *server, n int, w http.ResponseWriter) {
				if n < 3 {
					accepted(w, location) // asks for 7 s
					return
				}
				s.image = imageA
				w.WriteHeader(http.StatusNoContent)
			},
			waited: (2 + 7 + 7) * time.Second,
		},
		{
			name: "the Location is the task (iLO)", header: location,
			poll: func(s *server, n int, w http.ResponseWriter) {
				state := []string{"New", "Running", "Completed"}[n-1]
				if state == "Completed" {
					s.image = imageA
				}
				reply(w, http.StatusOK, task(state))
			},
			waited: 6 * time.Second,
		},
		{
			name: "no Location", body: task("New"),
			poll: func(s *server, n int, w http.ResponseWriter) {
				s.image = imageA
				reply(w, http.StatusOK, task("Completed"))
			},
			waited: 2 * time.Second,
		},
		{
			name: "nothing to follow",
			poll: func(s *server, n int, w http.ResponseWriter) {},
			err:  "the drive does not show it", waited: time.Minute,
		},
		{
			name: "not there at first (iDRAC)", header: location,
			poll: func(s *server, n int, w http.ResponseWriter) {
				if n < 3 {
					fail(w, http.StatusNotFound, "ResourceMissingAtURI", "not found")
					return
				}
				s.image = imageA
				reply(w, http.StatusOK, task("Completed"))
			},
			waited: 6 * time.Second,
		},
		{
			name: "purged before its end", header: location,
			poll: func(s *server, n int, w http.ResponseWriter) {
				s.image = imageA
				fail(w, http.StatusNotFound, "ResourceMissingAtURI", "not found")
			},
			waited: 6 * time.Second,
		},
		{
			name: "ends badly", header: location,
			poll: func(s *server, n int, w http.ResponseWriter) { reply(w, http.StatusOK, task("Exception")) },
			err:  "redfish: insert media: the task ended as Exception: Cannot reach the image.", waited: 2 * time.Second,
		},
		{
			name: "monitor answers as the action would", header: location,
			poll: func(s *server, n int, w http.ResponseWriter) {
				fail(w, http.StatusBadRequest, "CouldNotEstablishConnection", "The service failed to establish a connection.")
			},
			err: "400 Bad Request: The service failed to establish a connection.", waited: 2 * time.Second,
		},
		{
			name: "never ends", header: location,
			poll: func(s *server, n int, w http.ResponseWriter) { accepted(w, location) },
			err:  "the BMC is not done after", waited: 597 * time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			c := s.open()
			s.route("POST "+insertPath, func(w http.ResponseWriter, _ *http.Request) {
				if tt.header != "" {
					w.Header().Set("Location", tt.header)
				}
				if tt.body == nil {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				reply(w, http.StatusAccepted, tt.body)
			})
			n := 0
			s.route("GET "+location, func(w http.ResponseWriter, _ *http.Request) {
				n++
				tt.poll(s, n, w)
			})
			began := s.clock.Now()
			err := c.InsertMedia(t.Context(), imageA)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("InsertMedia() error = %v, want %q", err, tt.err)
			}
			if got := s.clock.Since(began); got != tt.waited {
				t.Errorf("InsertMedia() waited %s, want %s", got, tt.waited)
			}
		})
	}
}

// The drive shows an inserted image late, or an ejected one for a while (iDRAC).
func TestMediaThatTheDriveShowsLate(t *testing.T) {
	s := newServer(t)
	c := s.open()
	s.insertMedia(c, imageA)
	var stale int
	s.wrap("GET "+mediaPath+"/2", func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if stale--; stale >= 0 {
				reply(w, http.StatusOK, map[string]any{"MediaTypes": []string{"CD"}, "Image": imageA, "Inserted": true,
					"Actions": map[string]any{
						"#VirtualMedia.InsertMedia": map[string]any{"target": insertPath},
						"#VirtualMedia.EjectMedia":  map[string]any{"target": ejectPath},
					}})
				return
			}
			next(w, r)
		}
	})
	s.mu.Lock()
	stale = 4
	s.mu.Unlock()
	s.insertMedia(c, imageB)

	// Beyond the limit it is an error.
	s.mu.Lock()
	stale = 1000
	s.mu.Unlock()
	if err := c.EjectMedia(t.Context()); err == nil || !strings.Contains(err.Error(), "eject media: the BMC accepted it") {
		t.Errorf("EjectMedia() error = %v though the drive shows an image for ever", err)
	}
}

// After the ejected image's successor was inserted, an iDRAC shows the old one for a
// while. A drive that was empty may show no URL at all.
func TestInsertMediaWaitsUntilTheOldImageIsGone(t *testing.T) {
	for _, tt := range []struct {
		name     string
		before   string // inserted before
		shown    string // for some readings after the insertion
		readings int    // number of these readings until InsertMedia returns
	}{
		{"the image before", imageA, imageA, 3},
		{"a URL rewritten by the BMC", imageA, "//images.example/b.iso", 1},
		{"no URL in a drive that was empty", "", "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			c := s.open()
			if tt.before != "" {
				s.insertMedia(c, tt.before)
			}
			stale, read := 0, 0
			s.wrap("POST "+insertPath, func(next http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					next(w, r)
					stale = 3
				}
			})
			s.wrap("GET "+mediaPath+"/2", func(next http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if read == stale {
						next(w, r)
						return
					}
					read++
					reply(w, http.StatusOK, map[string]any{"MediaTypes": []string{"CD"}, "Image": tt.shown, "Inserted": true})
				}
			})
			s.insertMedia(c, imageB)
			if read != tt.readings {
				t.Errorf("InsertMedia() returned after %d readings that show %q, want %d", read, tt.shown, tt.readings)
			}
		})
	}
}

// EjectMedia returns no error if the image has been ejected meanwhile.
func TestEjectMediaOfAnEmptyDrive(t *testing.T) {
	s := newServer(t)
	c := s.open()
	s.insertMedia(c, imageA)
	s.wrap("POST "+ejectPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			s.image = ""
			next(w, r) // refuses
		}
	})
	if err := c.EjectMedia(t.Context()); err != nil {
		t.Errorf("EjectMedia() error = %v though the drive is empty", err)
	}
}

// Huawei's iBMC has one action for inserting and ejecting, with a task for each.
func TestMediaByVmmControl(t *testing.T) {
	s := newServer(t)
	const control = mediaPath + "/2/Oem/Huawei/Actions/VirtualMedia.VmmControl"
	image := ""
	s.route("GET "+mediaPath+"/2", s.show(func() map[string]any {
		return map[string]any{"MediaTypes": []string{"CD"}, "Inserted": image != "", "Image": image, "Oem": map[string]any{
			"Huawei": map[string]any{"Actions": map[string]any{"#VirtualMedia.VmmControl": map[string]any{"target": control}}},
		}}
	}))
	s.route("POST "+control, func(w http.ResponseWriter, r *http.Request) {
		body, _ := object(w, r)
		image, _ = body["Image"].(string)
		if strings.HasPrefix(image, "http://") {
			image = ""
			fail(w, http.StatusBadRequest, "FileTransferProtocolMismatch", "no")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	c := s.open()
	if err := c.InsertMedia(t.Context(), imageA); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("InsertMedia(%s) error = %v, want ErrUnsupported", imageA, err)
	}
	if err := c.InsertMedia(t.Context(), imageB); err != nil || image != imageB {
		t.Errorf("InsertMedia(%s) error = %v, the BMC has %q", imageB, err, image)
	}
	if err := c.EjectMedia(t.Context()); err != nil || image != "" {
		t.Errorf("EjectMedia() error = %v, the BMC has %q", err, image)
	}
}

// bmcweb fetches by HTTPS only, and refuses other URLs with a message that no
// registry has.
func TestInsertByHTTPSAlone(t *testing.T) {
	const plain, secure = "http://images.example/c.iso", "https://images.example/c.iso"
	s := newServer(t)
	config := s.config(systemPath)
	config.Workarounds = new(bmc.Workarounds)
	c, err := redfish.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s.wrap("POST "+insertPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), plain) {
				fail(w, http.StatusBadRequest, "ResourceAtUriInUnknownFormat", "no", plain)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next(w, r)
		}
	})
	insert := func(tries int) {
		t.Helper()
		s.forget()
		if err := c.InsertMedia(t.Context(), plain, secure); err != nil {
			t.Fatalf("InsertMedia(both) error = %v", err)
		}
		if got := s.count("POST " + insertPath); got != tries || s.image != secure {
			t.Errorf("InsertMedia(both) takes %d tries and inserts %s, want %d and %s", got, s.image, tries, secure)
		}
	}
	insert(2)
	insert(0) // it is inserted already
	if err := c.EjectMedia(t.Context()); err != nil {
		t.Fatal(err)
	}
	insert(1) // the recorded protocol is tried first
	if odd := config.Workarounds.Nonstandard(); len(odd) != 1 || odd[0].String() != "virtual media by: HTTPS" {
		t.Errorf("it has learned %v", odd)
	}
	if err := c.EjectMedia(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.InsertMedia(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "ResourceAtUriInUnknownFormat") && !strings.Contains(err.Error(), "no") {
		t.Errorf("InsertMedia(%s) error = %v, want what the BMC says", plain, err)
	}
}
