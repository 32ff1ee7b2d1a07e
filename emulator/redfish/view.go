package redfish

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// object is a JSON object of a body.
type object = map[string]any

// view is all that a body may depend on. A body that was made from the same
// view is the same, which is what lets bodies be kept.
type view struct {
	d   *dialect.Record
	m   *machine.View     // nil for a resource that does not show the machine
	b   *bmc.View         // nil for a resource that does not show the BMC
	uri string            // of the resource
	ids map[string]string // the variables of its pattern
}

// things says what each variable of a pattern can stand for. A collection
// lists them, and nothing else exists.
var things = map[string]func(v view) []string{
	"account":    func(v view) []string { return list(v.b.Accounts, func(a bmc.Account) string { return a.ID }) },
	"chassis":    func(v view) []string { return []string{v.d.ChassisID} },
	"controller": func(v view) []string { return []string{"0"} },
	"drive":      func(v view) []string { return list(v.storage().Drives, func(d storage.Drive) string { return d.ID }) },
	"manager":    func(v view) []string { return []string{v.d.ManagerID} },
	"nic":        func(v view) []string { return list(v.m.Identity.NICs, func(n machine.NIC) string { return n.ID }) },
	"role":       func(v view) []string { return list(roles, func(r role) string { return string(r.name) }) },
	"session":    func(v view) []string { return list(v.b.Sessions, func(s bmc.Session) string { return s.ID }) },
	"slot":       func(v view) []string { return list(v.b.Slots, func(s bmc.Slot) string { return s.ID }) },
	"storage": func(v view) []string {
		return list(v.m.Identity.Storage, func(c storage.Controller) string { return c.ID })
	},
	"system": func(v view) []string { return []string{v.d.SystemID} },
	"volume": func(view) []string { return nil },
}

// list is what of returns for each element.
func list[T, S any](all []T, of func(T) S) []S {
	out := make([]S, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

// pick is the element whose ID is id, or a zero one.
func pick[T any](all []T, id string, of func(T) string) (found T) {
	for _, t := range all {
		if of(t) == id {
			return t
		}
	}
	return found
}

// storage is the storage controller that the view is of.
func (v view) storage() storage.Controller {
	return pick(v.m.Identity.Storage, v.ids["storage"], func(c storage.Controller) string { return c.ID })
}

// The addresses of what there is one of.
func (v view) system(below ...string) string {
	return address("/redfish/v1/Systems", v.d.SystemID, below)
}
func (v view) manager(below ...string) string {
	return address("/redfish/v1/Managers", v.d.ManagerID, below)
}
func (v view) chassis(below ...string) string {
	return address("/redfish/v1/Chassis", v.d.ChassisID, below)
}

func address(collection, id string, below []string) string {
	return strings.Join(append([]string{collection, id}, below...), "/")
}

// ref is a link to a resource (DSP0266, "Reference properties").
func ref(uri string) object { return object{"@odata.id": uri} }

// refs are links to resources.
func refs(uris ...string) []object { return list(uris, ref) }

// status is a Resource.Status.
func status(state string) object { return object{"State": state, "Health": "OK"} }

// serviceUUID identifies the service, and with it the BMC. It is derived from
// the machine's own, which must not be shown twice for different things.
func (v view) serviceUUID() string {
	sum := sha256.Sum256([]byte("bmc/" + v.m.Identity.UUID))
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // RFC 9562 version 8, custom
	x := hex.EncodeToString(u)
	return fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:])
}
