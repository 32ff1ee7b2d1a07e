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

// updateService is what the driver reads of an UpdateService.
type updateService struct {
	Inventory link   `json:"FirmwareInventory"`
	Multipart string `json:"MultipartHttpPushUri"`
	Push      string `json:"HttpPushUri"`
	Actions   struct {
		Simple target `json:"#UpdateService.SimpleUpdate"`
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

// part is a component with where the service has it.
type part struct {
	bmc.Component
	uris  []string // of the resources that it is of
	image string   // URI of its inventory, where the resource links it
}

// Components reads what tells of the firmware of the system's parts: the
// inventory's names and identifiers are each vendor's own.
func (c *client) Components(ctx context.Context) ([]bmc.Component, error) {
	parts, err := c.parts(ctx, "")
	if err != nil {
		return nil, err
	}
	var out []bmc.Component
	for _, p := range parts {
		out = append(out, p.Component)
	}
	return out, nil
}

// parts reads all components or, of those that take requests of their own, the
// one with a name.
func (c *client) parts(ctx context.Context, name string) ([]part, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return nil, err
	}
	var out []part
	if s.BIOS != "" || s.Bios.ID != "" {
		out = append(out, part{Component: bmc.Component{Name: bmc.ComponentBIOS, Version: s.BIOS}, uris: []string{s.Bios.ID, s.uri}})
	}
	if name == "" || name == bmc.ComponentBMC {
		p, err := c.managerPart(ctx, s)
		if err != nil {
			return nil, err
		}
		if p.Version != "" {
			out = append(out, p)
		}
	}
	if name == "" || strings.HasPrefix(name, bmc.ComponentNIC) {
		nics, err := c.adapterParts(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, nics...)
	}
	return out, nil
}

func (c *client) managerPart(ctx context.Context, s computerSystem) (part, error) {
	managers, err := c.managers(ctx, s)
	if err != nil {
		return part{}, err
	}
	for _, uri := range managers {
		var m struct {
			Version string `json:"FirmwareVersion"`
			Links   struct {
				Image link `json:"ActiveSoftwareImage"`
			} `json:"Links"`
		}
		if _, err := c.get(ctx, uri, &m); err != nil {
			return part{}, err
		}
		if m.Version != "" {
			return part{Component: bmc.Component{Name: bmc.ComponentBMC, Version: m.Version}, uris: []string{uri}, image: m.Links.Image.ID}, nil
		}
	}
	return part{}, nil
}

// adapterParts are the network adapters of the system's chassis.
func (c *client) adapterParts(ctx context.Context, s computerSystem) ([]part, error) {
	var out []part
	for _, chassis := range s.Links.Chassis {
		var ch struct {
			Adapters link `json:"NetworkAdapters"`
		}
		if _, err := c.get(ctx, chassis.ID, &ch); err != nil && !notFound(err) {
			return nil, err
		}
		if ch.Adapters.ID == "" {
			continue
		}
		uris, err := c.members(ctx, ch.Adapters.ID)
		if err != nil && !notFound(err) {
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
					out = append(out, part{Component: bmc.Component{Name: bmc.ComponentNIC + a.ID, Version: ctl.Version}, uris: []string{uri}})
					break
				}
			}
		}
	}
	return out, nil
}

// software is what the driver reads of a SoftwareInventory.
type software struct {
	Version string `json:"Version"`
	Related []link `json:"RelatedItem"`
	Status  struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`

	uri string
}

// Component reads a component with its entry in the inventory.
func (c *client) Component(ctx context.Context, name string) (bmc.Component, error) {
	p, entry, err := c.inventoried(ctx, "Component", name)
	if err != nil {
		return bmc.Component{}, err
	}
	p.Updating = entry.Status.State == string(schemas.UpdatingState)
	p.Health = entry.Status.Health
	return p.Component, nil
}

// inventoried finds a component and its entry in the inventory, which is zero
// where there is none.
func (c *client) inventoried(ctx context.Context, verb, name string) (part, software, error) {
	parts, err := c.parts(ctx, name)
	if err != nil {
		return part{}, software{}, err
	}
	i := slices.IndexFunc(parts, func(p part) bool { return p.Name == name })
	if i < 0 {
		return part{}, software{}, unsupported(verb, "the system has no component "+name)
	}
	p := parts[i]
	if name == bmc.ComponentBIOS && p.uris[0] != "" {
		b, err := c.readSettings(ctx, p.uris[0])
		if err != nil && !notFound(err) {
			return p, software{}, err
		}
		p.image = b.Links.Image.ID
	}
	if p.image != "" {
		s := software{uri: p.image}
		_, err := c.get(ctx, p.image, &s)
		if err == nil || !notFound(err) {
			return p, s, err
		}
	}
	s, err := c.entryOf(ctx, p)
	return p, s, err
}

// entryOf looks for a component in the inventory: by the resource that it is
// of, else by its version, when that is unmistakable.
func (c *client) entryOf(ctx context.Context, p part) (software, error) {
	u, err := c.updateService(ctx, "Component")
	if err != nil || u.Inventory.ID == "" {
		if errors.Is(err, bmc.ErrUnsupported) {
			err = nil
		}
		return software{}, err
	}
	uris, err := c.members(ctx, u.Inventory.ID)
	if err != nil {
		return software{}, err
	}
	var alike, related []software
	for _, uri := range uris {
		s := software{uri: uri}
		if _, err := c.get(ctx, uri, &s); err != nil {
			if notFound(err) {
				continue
			}
			return software{}, err
		}
		if s.Version != "" && s.Version == p.Version {
			alike = append(alike, s)
		}
		if slices.ContainsFunc(s.Related, func(l link) bool { return l.ID != "" && slices.Contains(p.uris, l.ID) }) {
			related = append(related, s)
		}
	}
	for _, found := range [][]software{both(related, alike), related, alike} {
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return software{}, nil
}

func both(a, b []software) (out []software) {
	for _, x := range a {
		if slices.ContainsFunc(b, func(y software) bool { return y.uri == x.uri }) {
			out = append(out, x)
		}
	}
	return out
}

// Update asks for SimpleUpdate. Services differ on which parameters they take,
// and refuse before they act.
func (c *client) Update(ctx context.Context, component, image string) (string, error) {
	u, err := c.updateService(ctx, "Update")
	if err != nil {
		return "", err
	}
	if u.Actions.Simple.URI == "" {
		return "", unsupported("Update", "the update service fetches no images")
	}
	_, entry, err := c.inventoried(ctx, "Update", component)
	if err != nil {
		return "", err
	}
	image, user, password := bare(image)
	all := map[string]any{"ImageURI": image, "TransferProtocol": protocolOf(image), "Targets": []string{entry.uri}}
	if user != "" {
		all["Username"], all["Password"] = user, password
	}
	if entry.uri == "" {
		delete(all, "Targets")
	}
	a, err := c.do(ctx, http.MethodPost, u.Actions.Simple.URI, all, nil)
	for _, optional := range []string{"Targets", "TransferProtocol"} {
		if all[optional] == nil || !aboutParameter(err, optional) {
			continue
		}
		delete(all, optional)
		a, err = c.do(ctx, http.MethodPost, u.Actions.Simple.URI, all, nil)
	}
	if err != nil {
		return "", err
	}
	return taskOf(a), nil
}

// bare takes user and password out of an address: services repeat addresses in
// what they log.
func bare(image string) (address, user, password string) {
	u, err := url.Parse(image)
	if err != nil || u.User == nil {
		return image, "", ""
	}
	user = u.User.Username()
	password, _ = u.User.Password()
	u.User = nil
	return u.String(), user, password
}

func aboutParameter(err error, name string) bool {
	e := new(statusError)
	return badRequest(err) && errors.As(err, &e) && (slices.ContainsFunc(e.arguments, func(a string) bool {
		return strings.Contains(a, name)
	}) || strings.Contains(e.text, name))
}

// taskOf is the task that a request has begun: the Task itself, where the
// answer shows it, as its monitor is gone once it was heard.
func taskOf(a answer) string {
	var t task
	_ = decode(a.body, &t) // there may be no body
	if strings.HasPrefix(t.Type, "#Task.") && t.ID != "" {
		return local(t.ID)
	}
	if a.status != http.StatusAccepted {
		return ""
	}
	return local(monitor(a))
}

// taskStates map TaskState; others are at their end (see task.running).
var taskStates = map[schemas.TaskState]bmc.TaskState{
	schemas.PendingTaskState: bmc.TaskWaiting,
}

// Task reads a Task or its monitor.
func (c *client) Task(ctx context.Context, uri string) (bmc.Task, error) {
	a, err := c.do(ctx, http.MethodGet, uri, nil, nil)
	if notFound(err) {
		return bmc.Task{}, bmc.ErrNoTask
	}
	e := new(statusError)
	if errors.As(err, &e) && e.kind == nil && e.status/100 == 4 { // a monitor answers as the request would have
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
	out := bmc.Task{State: bmc.TaskDone, Percent: int(t.Percent), Text: c.told(t.Messages)}
	is, listed := taskStates[schemas.TaskState(t.State)]
	switch {
	case t.failed(), t.State != "" && !t.running() && t.Status == "Critical":
		out.State = bmc.TaskFailed
	case listed:
		out.State = is
	case t.running(), a.status == http.StatusAccepted:
		out.State = bmc.TaskRunning
	}
	return out, nil
}

// told joins a task's messages.
func (c *client) told(messages json.RawMessage) string {
	var texts []string
	for _, m := range messagesOf(messages, "") {
		texts = append(texts, m.String())
	}
	return c.clean(strings.Join(texts, "; "))
}
