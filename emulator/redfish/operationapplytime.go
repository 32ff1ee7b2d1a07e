package redfish

import (
	"net/http"
	"slices"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// takeApplyTime removes @Redfish.OperationApplyTime from a body and returns it, or the
// default (DSP0266, "Operation apply time"). When it is invalid, it sends the error
// response and returns false.
func (x *request) takeApplyTime(in *resource.Document, v resource.View) (applyTime string, ok bool) {
	value, sent := in.Get(resource.OperationApplyTime)
	times := x.match.SupportedApplyTimes(v)
	if a := x.match.Action; a != nil && !a.SupportsApplyTime || x.r.Method == http.MethodPatch || len(times) == 0 {
		return resource.Immediate, true
	}
	if !sent {
		return times[0], true
	}
	applyTime, _ = value.(string)
	if in.Fields[in.Index(resource.OperationApplyTime)].Duplicate || !slices.Contains(times, applyTime) {
		x.sendError(http.StatusBadRequest, message.PropertyValueNotInList.With(resource.Echo(value), resource.OperationApplyTime).About("#/"+resource.OperationApplyTime))
		return "", false
	}
	*in = in.DeleteFunc(func(f resource.Field) bool { return f.Name == resource.OperationApplyTime })
	return applyTime, true
}
