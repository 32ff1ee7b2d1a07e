package redfish

import (
	"net/http"
	"slices"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// takeApplyTime takes the annotation out of what a client sent. It is false if the
// request was refused for it.
func (x *request) takeApplyTime(in *resource.Document, v resource.View) (when string, ok bool) {
	value, sent := in.Get(resource.OperationApplyTime)
	if a := x.match.Action; a != nil && !a.SupportsApplyTime || x.r.Method == http.MethodPatch || x.match.OperationApplyTimes(v) == nil {
		return resource.Immediate, true
	}
	if !sent {
		return x.match.ApplyTimes(v)[0], true
	}
	when, _ = value.(string)
	if in.Fields[in.Index(resource.OperationApplyTime)].Duplicate || !slices.Contains(x.match.ApplyTimes(v), when) {
		x.refuse(http.StatusBadRequest, message.PropertyValueNotInList.With(resource.Echo(value), resource.OperationApplyTime).About("#/"+resource.OperationApplyTime))
		return "", false
	}
	*in = in.DeleteFunc(func(f resource.Field) bool { return f.Name == resource.OperationApplyTime })
	return when, true
}
