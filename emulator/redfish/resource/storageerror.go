package resource

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// storageFields maps a field of a storage command to its property, as a path from the
// resource, or to the parameter of an action.
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

// arrayPointer returns the JSON pointer to an array element, or to the array when i is
// negative.
func arrayPointer(path string, i int) string {
	if i < 0 {
		return "#/" + path
	}
	return "#/" + path + "/" + strconv.Itoa(i)
}

// ruleMessage is the answer to a broken rule of the storage: the HTTP status and the
// message.
type ruleMessage struct {
	status  int
	message func(e *storage.RuleError, property, value string) message.Message
}

func valueIncorrect(_ *storage.RuleError, property, value string) message.Message {
	return message.PropertyValueIncorrect.With(property, value)
}

func resourceConflict(_ *storage.RuleError, property, value string) message.Message {
	return message.PropertyValueResourceConflict.With(property, value, value)
}

// ruleMessages maps the reason of a rule error to its answer. Other reasons answer 400 with
// PropertyValueIncorrect.
var ruleMessages = map[storage.Why]ruleMessage{
	storage.Unknown: {http.StatusBadRequest, func(_ *storage.RuleError, p, value string) message.Message {
		return message.PropertyValueNotInList.With(value, p)
	}},
	storage.Unsupported: {http.StatusBadRequest, func(_ *storage.RuleError, p, value string) message.Message {
		return message.PropertyValueNotInList.With(value, p)
	}},
	storage.Twice:     {http.StatusBadRequest, valueIncorrect},
	storage.InUse:     {http.StatusConflict, resourceConflict},
	storage.Faulty:    {http.StatusConflict, resourceConflict},
	storage.IsForeign: {http.StatusConflict, resourceConflict},
	storage.Mixed:     {http.StatusBadRequest, resourceConflict},
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
	storage.Incomplete: {http.StatusConflict, valueIncorrect},
}

// storageError converts an error of the storage to the error of the request. A rule error
// names the property, or the parameter of the action, that is wrong.
func (c Call) storageError(err error) error {
	var e *storage.RuleError
	switch {
	case errors.Is(err, storage.ErrPower):
		return Reject(http.StatusConflict, message.ChassisPowerStateOnRequired.With(c.View.Dialect.ChassisID))
	case !errors.As(err, &e):
		return err
	case e.Field == storage.FieldVolumes && e.Why == storage.TooMany:
		return Reject(http.StatusBadRequest, message.CreateLimitReachedForResource.With())
	}
	path, ok := storageFields[e.Field]
	if !ok { // the request has no such property
		return Reject(http.StatusConflict, message.ResourceInUse.With())
	}
	if path == "DisplayName" && c.Values["DisplayName"] == nil {
		path = "Name"
	}
	property, value := path[strings.LastIndexByte(path, '/')+1:], e.Value
	if e.Index >= 0 && property != "ControllerRates" { // a drive, which clients name by its URI
		value = c.View.subsystem("Drives", e.Value)
	}
	b, ok := ruleMessages[e.Why]
	if !ok {
		b = ruleMessage{http.StatusBadRequest, valueIncorrect}
	}
	m := b.message(e, property, value)
	if a := c.Match.Action; a != nil {
		if _, is := c.Values[property]; !is && property == "Drives" {
			return Reject(http.StatusConflict, message.ActionParameterValueConflict.With("RAIDType", e.Value))
		}
		return Reject(b.status, message.ActionParameterValueConflict.With(property, value).About(arrayPointer(property, e.Index)))
	}
	return Reject(b.status, m.About(arrayPointer(path, e.Index)))
}
