package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

var _ bmc.Updater = (*client)(nil)

// updateService holds the properties that the driver reads of the UpdateService.
type updateService struct {
	Inventory link   `json:"FirmwareInventory"`
	Multipart string `json:"MultipartHttpPushUri"`
	Push      string `json:"HttpPushUri"`
	Actions   struct {
		Simple actionTarget `json:"#UpdateService.SimpleUpdate"`
	} `json:"Actions"`
}

func (c *client) updateService(ctx context.Context, verb string) (updateService, error) {
	c.mu.Lock()
	uri := c.root.Updates.ID
	c.mu.Unlock()
	if uri == "" {
		return updateService{}, unsupported(verb, "it has no update service")
	}
	var u updateService
	_, err := c.get(ctx, uri, &u)
	return u, err
}

// component is a bmc.Component with its URIs in the service.
type component struct {
	bmc.Component
	uris  []string // URIs of the resources that run this firmware
	image string   // URI of its SoftwareInventory, if the resource links it
}

// Components reads the versions from the resources that run firmware, not from the
// inventory: its names and identifiers differ by vendor.
func (c *client) Components(ctx context.Context) ([]bmc.Component, error) {
	parts, err := c.components(ctx, "")
	if err != nil {
		return nil, err
	}
	var out []bmc.Component
	for _, p := range parts {
		out = append(out, p.Component)
	}
	return out, nil
}

// components reads all components or, where a component takes requests of its own,
// only the one with this name.
func (c *client) components(ctx context.Context, name string) ([]component, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return nil, err
	}
	var out []component
	if s.BIOS != "" || s.Bios.ID != "" {
		out = append(out, component{Component: bmc.Component{Name: bmc.ComponentBIOS, Version: s.BIOS}, uris: []string{s.Bios.ID, s.uri}})
	}
	if name == "" || name == bmc.ComponentBMC {
		p, err := c.managerComponent(ctx, s)
		if err != nil {
			return nil, err
		}
		if p.Version != "" {
			out = append(out, p)
		}
	}
	if name == "" || strings.HasPrefix(name, bmc.ComponentNIC) {
		nics, err := c.adapterComponents(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, nics...)
	}
	return out, nil
}

func (c *client) managerComponent(ctx context.Context, s computerSystem) (component, error) {
	managers, err := c.managers(ctx, s)
	if err != nil {
		return component{}, err
	}
	for _, uri := range managers {
		var m struct {
			Version string `json:"FirmwareVersion"`
			Links   struct {
				Image link `json:"ActiveSoftwareImage"`
			} `json:"Links"`
		}
		if _, err := c.get(ctx, uri, &m); err != nil {
			return component{}, err
		}
		if m.Version != "" {
			return component{Component: bmc.Component{Name: bmc.ComponentBMC, Version: m.Version}, uris: []string{uri}, image: m.Links.Image.ID}, nil
		}
	}
	return component{}, nil
}

// adapterComponents reads the network adapters of the system's chassis.
func (c *client) adapterComponents(ctx context.Context, s computerSystem) ([]component, error) {
	var out []component
	for _, chassis := range s.Links.Chassis {
		var ch struct {
			Adapters link `json:"NetworkAdapters"`
		}
		if _, err := c.get(ctx, chassis.ID, &ch); err != nil && !isNotFound(err) {
			return nil, err
		}
		if ch.Adapters.ID == "" {
			continue
		}
		uris, err := c.members(ctx, ch.Adapters.ID)
		if err != nil && !isNotFound(err) {
			return nil, err
		}
		for _, uri := range uris {
			var a struct {
				ID          string `json:"Id"`
				Controllers []struct {
					Version string `json:"FirmwarePackageVersion"`
				} `json:"Controllers"`
			}
			if _, err := c.get(ctx, uri, &a); err != nil {
				return nil, err
			}
			for _, ctl := range a.Controllers {
				if ctl.Version != "" && a.ID != "" {
					out = append(out, component{Component: bmc.Component{Name: bmc.ComponentNIC + a.ID, Version: ctl.Version}, uris: []string{uri}})
					break
				}
			}
		}
	}
	return out, nil
}

// softwareInventory holds the properties that the driver reads of a
// SoftwareInventory.
type softwareInventory struct {
	Version string `json:"Version"`
	Related []link `json:"RelatedItem"`
	Status  struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`

	uri string
}

// Component reads a component and its entry in the firmware inventory.
func (c *client) Component(ctx context.Context, name string) (bmc.Component, error) {
	p, entry, err := c.findComponent(ctx, "Component", name)
	if err != nil {
		return bmc.Component{}, err
	}
	p.Updating = entry.Status.State == string(schemas.UpdatingState)
	p.Health = entry.Status.Health
	return p.Component, nil
}

// findComponent returns a component and its entry in the inventory, which is zero
// if there is none.
func (c *client) findComponent(ctx context.Context, verb, name string) (component, softwareInventory, error) {
	parts, err := c.components(ctx, name)
	if err != nil {
		return component{}, softwareInventory{}, err
	}
	i := slices.IndexFunc(parts, func(p component) bool { return p.Name == name })
	if i < 0 {
		return component{}, softwareInventory{}, unsupported(verb, "the system has no component "+name)
	}
	p := parts[i]
	if name == bmc.ComponentBIOS && p.uris[0] != "" {
		b, err := c.readSettings(ctx, p.uris[0])
		if err != nil && !isNotFound(err) {
			return p, softwareInventory{}, err
		}
		p.image = b.Links.Image.ID
	}
	if p.image != "" {
		s := softwareInventory{uri: p.image}
		_, err := c.get(ctx, p.image, &s)
		if err == nil || !isNotFound(err) {
			return p, s, err
		}
	}
	s, err := c.inventoryEntry(ctx, p)
	return p, s, err
}

// inventoryEntry finds a component's entry in the inventory: by RelatedItem, else
// by its version if only one entry has it.
func (c *client) inventoryEntry(ctx context.Context, p component) (softwareInventory, error) {
	u, err := c.updateService(ctx, "Component")
	if err != nil || u.Inventory.ID == "" {
		if errors.Is(err, bmc.ErrUnsupported) {
			err = nil
		}
		return softwareInventory{}, err
	}
	uris, err := c.members(ctx, u.Inventory.ID)
	if err != nil {
		return softwareInventory{}, err
	}
	var alike, related []softwareInventory
	for _, uri := range uris {
		s := softwareInventory{uri: uri}
		if _, err := c.get(ctx, uri, &s); err != nil {
			if isNotFound(err) {
				continue
			}
			return softwareInventory{}, err
		}
		if s.Version != "" && s.Version == p.Version {
			alike = append(alike, s)
		}
		if slices.ContainsFunc(s.Related, func(l link) bool { return l.ID != "" && slices.Contains(p.uris, l.ID) }) {
			related = append(related, s)
		}
	}
	for _, found := range [][]softwareInventory{intersect(related, alike), related, alike} {
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return softwareInventory{}, nil
}

func intersect(a, b []softwareInventory) (out []softwareInventory) {
	for _, x := range a {
		if slices.ContainsFunc(b, func(y softwareInventory) bool { return y.uri == x.uri }) {
			out = append(out, x)
		}
	}
	return out
}

// Update posts a SimpleUpdate. Services differ on which parameters they take, and
// refuse before they act: so the optional ones are left out when they are refused.
func (c *client) Update(ctx context.Context, component, image string) (string, error) {
	u, err := c.updateService(ctx, "Update")
	if err != nil {
		return "", err
	}
	if u.Actions.Simple.URI == "" {
		return "", unsupported("Update", "the update service fetches no images")
	}
	_, entry, err := c.findComponent(ctx, "Update", component)
	if err != nil {
		return "", err
	}
	image, user, password := splitCredentials(image)
	all := map[string]any{"ImageURI": image, "TransferProtocol": protocolOf(image), "Targets": []string{entry.uri}}
	if user != "" {
		all["Username"], all["Password"] = user, password
	}
	if entry.uri == "" {
		delete(all, "Targets")
	}
	a, err := c.do(ctx, http.MethodPost, u.Actions.Simple.URI, all, nil)
	for _, optional := range []string{"Targets", "TransferProtocol"} {
		if all[optional] == nil || !refusesParameter(err, optional) {
			continue
		}
		delete(all, optional)
		a, err = c.do(ctx, http.MethodPost, u.Actions.Simple.URI, all, nil)
	}
	if err != nil {
		return "", err
	}
	return taskURI(a), nil
}

// splitCredentials separates user and password from a URL, because services log
// the URLs that they are given.
func splitCredentials(image string) (address, user, password string) {
	u, err := url.Parse(image)
	if err != nil || u.User == nil {
		return image, "", ""
	}
	user = u.User.Username()
	password, _ = u.User.Password()
	u.User = nil
	return u.String(), user, password
}

func refusesParameter(err error, name string) bool {
	e := new(statusError)
	return isBadRequest(err) && errors.As(err, &e) && (slices.ContainsFunc(e.arguments, func(a string) bool {
		return strings.Contains(a, name)
	}) || strings.Contains(e.text, name))
}

// taskURI returns the URI of the task that a request has started: that of the Task
// itself if the response shows it, because its monitor is deleted after its last
// response; otherwise that of the monitor; "" if there is no task.
func taskURI(a response) string {
	var t task
	_ = decode(a.body, &t) // there may be no body
	if strings.HasPrefix(t.Type, "#Task.") && t.ID != "" {
		return localPath(t.ID)
	}
	if a.status != http.StatusAccepted {
		return ""
	}
	return localPath(monitorURI(a))
}

// taskStates maps the TaskStates that task.running and task.failed do not
// distinguish.
var taskStates = map[schemas.TaskState]bmc.TaskState{
	schemas.PendingTaskState: bmc.TaskWaiting,
}

// Task reads a Task or its monitor.
func (c *client) Task(ctx context.Context, uri string) (bmc.Task, error) {
	a, err := c.do(ctx, http.MethodGet, uri, nil, nil)
	if isNotFound(err) {
		return bmc.Task{}, bmc.ErrNoTask
	}
	e := new(statusError)
	if errors.As(err, &e) && e.kind == nil && e.status/100 == 4 { // a task monitor answers as the request would have
		return bmc.Task{State: bmc.TaskFailed, Percent: 100, Text: e.text}, nil
	}
	if err != nil {
		return bmc.Task{}, err
	}
	var t struct {
		task
		Percent float64 `json:"PercentComplete"`
		Status  string  `json:"TaskStatus"`
	}
	_ = decode(a.body, &t)
	out := bmc.Task{State: bmc.TaskDone, Percent: int(t.Percent), Text: c.taskText(t.Messages)}
	state, listed := taskStates[schemas.TaskState(t.State)]
	switch {
	case t.failed(), t.State != "" && !t.running() && t.Status == "Critical":
		out.State = bmc.TaskFailed
	case listed:
		out.State = state
	case t.running(), a.status == http.StatusAccepted:
		out.State = bmc.TaskRunning
	}
	return out, nil
}

// taskText joins the messages of a task.
func (c *client) taskText(messages json.RawMessage) string {
	var texts []string
	for _, m := range parseMessages(messages, "") {
		texts = append(texts, m.String())
	}
	return c.sanitize(strings.Join(texts, "; "))
}
