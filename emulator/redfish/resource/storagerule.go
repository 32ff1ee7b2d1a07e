package resource

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// storageFields says which property each field of a command to the storage is,
// as a path from the resource, or the parameter of an action.
var storageFields = map[storage.Field]string{
	storage.FieldType:     "RAIDType",
	storage.FieldDrives:   "Links/Drives",
	storage.FieldCapacity: "CapacityBytes",
	storage.FieldStrip:    "StripSizeBytes",
	storage.FieldSpan:     "MediaSpanCount",
	storage.FieldName:     "DisplayName",
	storage.FieldWrite:    "WriteCachePolicy",
	storage.FieldRead:     "ReadCachePolicy",
	storage.FieldSpares:   "Links/DedicatedSpareDrives",
	storage.FieldMethod:   "InitializeMethod",
	storage.FieldRate:     "ControllerRates",
}

// element is the pointer to an element of an array.
func element(path string, i int) string {
	if i < 0 {
		return "#/" + path
	}
	return "#/" + path + "/" + strconv.Itoa(i)
}

// breach is how a rule that was broken is told of a property.
type breach struct {
	status int
	say    func(e *storage.RuleError, property, value string) message.Message
}

func incorrect(_ *storage.RuleError, property, value string) message.Message {
	return message.PropertyValueIncorrect.With(property, value)
}

func stands(_ *storage.RuleError, property, value string) message.Message {
	return message.PropertyValueResourceConflict.With(property, value, value)
}

// breaches says how each reason is told. Others are incorrect.
var breaches = map[storage.Why]breach{
	storage.Unknown: {http.StatusBadRequest, func(_ *storage.RuleError, p, value string) message.Message {
		return message.PropertyValueNotInList.With(value, p)
	}},
	storage.Unsupported: {http.StatusBadRequest, func(_ *storage.RuleError, p, value string) message.Message {
		return message.PropertyValueNotInList.With(value, p)
	}},
	storage.Twice:     {http.StatusBadRequest, incorrect},
	storage.InUse:     {http.StatusConflict, stands},
	storage.Faulty:    {http.StatusConflict, stands},
	storage.IsForeign: {http.StatusConflict, stands},
	storage.Mixed:     {http.StatusBadRequest, stands},
	storage.TooFew: {http.StatusBadRequest, func(e *storage.RuleError, p, _ string) message.Message {
		return message.ArraySizeTooShort.With(p, strconv.FormatInt(e.Limit, 10))
	}},
	storage.TooMany: {http.StatusBadRequest, func(e *storage.RuleError, p, _ string) message.Message {
		return message.ArraySizeTooLong.With(p, strconv.FormatInt(e.Limit, 10))
	}},
	storage.Uneven: {http.StatusBadRequest, func(_ *storage.RuleError, p, _ string) message.Message {
		return message.PropertyValueConflict.With(p, "RAIDType")
	}},
	storage.TooSmall: {http.StatusBadRequest, func(_ *storage.RuleError, p, value string) message.Message {
		return message.PropertyValueOutOfRange.With(value, p)
	}},
	storage.TooLarge: {http.StatusBadRequest, func(_ *storage.RuleError, p, value string) message.Message {
		return message.PropertyValueOutOfRange.With(value, p)
	}},
	storage.Incomplete: {http.StatusConflict, incorrect},
}

// ruled is an error of the storage as it is answered: one against a rule names
// the property, or the parameter of the action, that is at fault.
func (c Call) ruled(err error) error {
	var e *storage.RuleError
	switch {
	case errors.Is(err, storage.ErrPower):
		return Decline(http.StatusConflict, message.ChassisPowerStateOnRequired.With(c.View.Dialect.ChassisID))
	case !errors.As(err, &e):
		return err
	case e.Field == storage.FieldVolumes && e.Why == storage.TooMany:
		return Decline(http.StatusBadRequest, message.CreateLimitReachedForResource.With())
	}
	path, ok := storageFields[e.Field]
	if !ok { // of nothing that clients send here
		return Decline(http.StatusConflict, message.ResourceInUse.With())
	}
	if path == "DisplayName" && c.Values["DisplayName"] == nil {
		path = "Name"
	}
	property, value := path[strings.LastIndexByte(path, '/')+1:], e.Value
	if e.Index >= 0 && property != "ControllerRates" { // a drive, which clients know by its address
		value = c.View.subsystem("Drives", e.Value)
	}
	b, ok := breaches[e.Why]
	if !ok {
		b = breach{http.StatusBadRequest, incorrect}
	}
	m := b.say(e, property, value)
	if a := c.Match.Action; a != nil {
		if _, is := c.Values[property]; !is && property == "Drives" {
			return Decline(http.StatusConflict, message.ActionParameterValueConflict.With("RAIDType", e.Value))
		}
		return Decline(b.status, message.ActionParameterValueConflict.With(property, value).About(element(property, e.Index)))
	}
	return Decline(b.status, m.About(element(path, e.Index)))
}
