package message

import (
	"slices"
	"strconv"
	"strings"
)

// Registry is a message registry.
type Registry struct {
	Prefix  string // "Base"
	Version string // the newest published version: "1.22.1"
}

// The standard registries (DSP8011 2025.4) with messages of a server's BMC.
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
	Complete bool // Entries has every message of the registry that is not deprecated
}

// Registries lists the standard registries.
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

// Versions maps the prefix of a registry to the version that a service implements:
// "Base": "1.8.4". The service implements the newest version of an absent registry.
type Versions map[string]string

// Of returns the version of a registry.
func (v Versions) Of(r *Registry) string {
	if version, ok := v[r.Prefix]; ok {
		return version
	}
	return r.Version
}

// Name returns a registry's prefix with its version without errata: "Base.1.22".
func (v Versions) Name(r *Registry) string {
	version := v.Of(r)
	if parts := strings.SplitN(version, ".", 3); len(parts) == 3 {
		version = parts[0] + "." + parts[1]
	}
	return r.Prefix + "." + version
}

// ID returns the MessageId of a message: the registry, its version without errata,
// and the key (DSP0266, "MessageId format").
func (v Versions) ID(m Message) string { return v.Name(m.Registry) + "." + m.Key }

// minor returns the minor part of a version; 0 when there is none.
func minor(version string) int {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}

// Before reports whether the service implements a version of a registry that is older
// than 1.than.
func (v Versions) Before(r *Registry, than int) bool { return minor(v.Of(r)) < than }

// In returns a message in the service's version of its registry. A message that was
// added later is replaced by the older one that means the same, or by GeneralError
// with the text in its resolution.
func (v Versions) In(m Message) Message {
	version, newest := minor(v.Of(m.Registry)), m
	for m.Since > version {
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

// general returns GeneralError, or Success for a message that is no error, with the
// message's text in the resolution.
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

// older maps a message of Base to the message that a service with an older version
// of Base sends instead. args are the arguments of the older message: %1 is the
// first argument of the newer one.
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
