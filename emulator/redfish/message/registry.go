package message

import (
	"slices"
	"strconv"
	"strings"
)

// Registry is a message registry.
type Registry struct {
	Prefix  string // "Base"
	Version string // the newest that there is: "1.22.1"
}

// The registries of the standard (DSP8011 2025.4) that a server's BMC speaks.
var (
	base                  = &Registry{"Base", "1.22.1"}
	accountSecurity       = &Registry{"AccountSecurity", "1.0.1"}
	environmental         = &Registry{"Environmental", "1.4.0"}
	heartbeatEvent        = &Registry{"HeartbeatEvent", "1.1.1"}
	jobEvent              = &Registry{"JobEvent", "1.1.1"}
	logService            = &Registry{"LogService", "1.1.0"}
	managerEvent          = &Registry{"ManagerEvent", "1.0.0"}
	networkDevice         = &Registry{"NetworkDevice", "1.1.1"}
	platform              = &Registry{"Platform", "1.3.2"}
	power                 = &Registry{"Power", "1.2.0"}
	resourceEvent         = &Registry{"ResourceEvent", "1.4.3"}
	sensorEvent           = &Registry{"SensorEvent", "1.1.0"}
	serviceCommunications = &Registry{"ServiceCommunications", "1.0.1"}
	storageDevice         = &Registry{"StorageDevice", "1.5.1"}
	taskEvent             = &Registry{"TaskEvent", "1.0.5"}
	telemetry             = &Registry{"Telemetry", "1.1.1"}
	update                = &Registry{"Update", "1.3.0"}
)

// Contents is a registry with its messages.
type Contents struct {
	*Registry
	Entries  []Entry
	Complete bool // the entries are all that the registry has and does not advise against
}

// Registries lists all of them.
var Registries = []Contents{
	{base, Base, true},
	{accountSecurity, AccountSecurity, true},
	{environmental, Environmental, false},
	{heartbeatEvent, HeartbeatEvent, true},
	{jobEvent, JobEvent, true},
	{logService, LogService, true},
	{managerEvent, ManagerEvent, true},
	{networkDevice, NetworkDevice, true},
	{platform, Platform, true},
	{power, Power, false},
	{resourceEvent, ResourceEvent, true},
	{sensorEvent, SensorEvent, true},
	{serviceCommunications, ServiceCommunications, true},
	{storageDevice, StorageDevice, true},
	{taskEvent, TaskEvent, true},
	{telemetry, Telemetry, true},
	{update, Update, true},
}

// Versions says which version of a registry a service speaks, by its prefix:
// "Base": "1.8.4". Of a registry that is not named it speaks the newest.
type Versions map[string]string

// Of is the version of a registry.
func (v Versions) Of(r *Registry) string {
	if version, ok := v[r.Prefix]; ok {
		return version
	}
	return r.Version
}

// Name is a registry with its version but for errata: "Base.1.22".
func (v Versions) Name(r *Registry) string {
	version := v.Of(r)
	if parts := strings.SplitN(version, ".", 3); len(parts) == 3 {
		version = parts[0] + "." + parts[1]
	}
	return r.Prefix + "." + version
}

// ID is the MessageId of a message: the registry, its version without errata,
// and the key (DSP0266, "MessageId format").
func (v Versions) ID(m Message) string { return v.Name(m.Registry) + "." + m.Key }

// minor is the minor version of a version.
func minor(version string) int {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}

// Before says whether a service speaks a version of a registry that is older
// than that minor one.
func (v Versions) Before(r *Registry, than int) bool { return minor(v.Of(r)) < than }

// In is a message as the service says it: one that its version of the registry
// does not have is told by an older one, or as a general error that quotes it.
func (v Versions) In(m Message) Message {
	spoken, newest := minor(v.Of(m.Registry)), m
	for m.Since > spoken {
		instead, ok := older[m.Key]
		if m.Registry != base || !ok {
			return newest.general()
		}
		d, _ := instead.is.Definition()
		args := slices.Clone(instead.args)
		for i, a := range args {
			if n, err := strconv.Atoi(strings.TrimPrefix(a, "%")); err == nil && a[0] == '%' {
				args[i] = m.Args[n-1]
			}
		}
		related := m.Related
		m = d.Make(args...)
		m.Related = related
	}
	return m
}

// general is a message without a key of its own. Of a message that is no error
// there is only that all went well.
func (m Message) general() Message {
	d := Definition(GeneralError)
	if m.Severity == OK {
		d = Definition(Success)
	}
	out := d.Make()
	out.Related = m.Related
	if out.Resolution = m.Text; m.Resolution != "" && m.Resolution != Success.Resolution {
		out.Resolution += " " + m.Resolution
	}
	return out
}

// older says what a service says that speaks a version of Base from before a
// message was added. The arguments are those of the older message: %1 is the
// first of the newer one.
var older = map[string]struct {
	is   Entry
	args []string
}{
	"AccessForbidden":                {InsufficientPrivilege, nil},
	"AccessUnauthorized":             {NoValidSession, nil},
	"ActionParameterValueNotInList":  {ActionParameterValueFormatError, []string{"%1", "%2", "%3"}},
	"ActionParameterValueOutOfRange": {ActionParameterValueNotInList, []string{"%1", "%2", "%3"}},
	"AuthenticationTokenRequired":    {NoValidSession, nil},
	"ChassisPowerStateOffRequired":   {ResourceInUse, nil},
	"ChassisPowerStateOnRequired":    {ResourceInStandby, nil},
	"InvalidJSON":                    {MalformedJSON, nil},
	"InvalidURI":                     {ResourceMissingAtURI, []string{"%1"}},
	"MissingOrMalformedPart":         {UnrecognizedRequestBody, nil},
	"OperationFailed":                {InternalError, nil},
	"OperationTimeout":               {InternalError, nil},
	"PasswordChangeRequired":         {InsufficientPrivilege, nil},
	"PasswordComplexityNotMet":       {PropertyValueError, []string{"Password"}},
	"PasswordIncorrectLength":        {PropertyValueError, []string{"Password"}},
	"PasswordReuseTooRecent":         {PropertyValueError, []string{"Password"}},
	"PayloadTooLarge":                {UnrecognizedRequestBody, nil},
	"PropertyNotUpdated":             {InternalError, nil},
	"PropertyValueExternalConflict":  {PropertyValueIncorrect, []string{"%1", "%2"}},
	"PropertyValueIncorrect":         {PropertyValueNotInList, []string{"%2", "%1"}},
	"PropertyValueResourceConflict":  {PropertyValueIncorrect, []string{"%1", "%2"}},
	"QueryCombinationInvalid":        {QueryNotSupported, nil},
	"QueryNotSupportedOnOperation":   {QueryNotSupported, nil},
	"QueryParameterUnsupported":      {QueryNotSupported, nil},
	"ResetRecommended":               {ResetRequired, []string{"%1", "%2"}},
	"ResourceCreationConflict":       {ResourceInUse, nil},
	"RestrictedPrivilege":            {InsufficientPrivilege, nil},
	"RestrictedRole":                 {InsufficientPrivilege, nil},
}
