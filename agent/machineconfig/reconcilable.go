package machineconfig

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	opv1 "github.com/openshift/api/operator/v1"
)

// ForceFile makes the daemon apply a configuration without a look at the files on disk. No
// configuration writes it.
const ForceFile = "/run/machine-config-daemon-force"

// section is a part of an Ignition configuration that only an installation applies.
type section struct {
	name  string
	value func(types.Config) any
	// override is the value of irreconcilableValidationOverrides.storage by which a node takes a
	// configuration with another section, and leaves its disks as they are; "" is none.
	override opv1.IrreconcilableValidationOverridesStorage
}

var irreconcilable = []section{
	{"disks", func(c types.Config) any { return c.Storage.Disks }, opv1.IrreconcilableValidationOverridesStorageDisks},
	{"filesystems", func(c types.Config) any { return c.Storage.Filesystems }, opv1.IrreconcilableValidationOverridesStorageFileSystems},
	{"raid", func(c types.Config) any { return c.Storage.Raid }, opv1.IrreconcilableValidationOverridesStorageRaid},
	{"luks", func(c types.Config) any { return c.Storage.Luks }, ""},
	{"directories", func(c types.Config) any { return c.Storage.Directories }, ""},
	{"links", func(c types.Config) any { return c.Storage.Links }, ""},
	{"groups", func(c types.Config) any { return c.Passwd.Groups }, ""},
	{"kernelArguments of Ignition (use spec.kernelArguments)", func(c types.Config) any { return c.KernelArguments }, ""},
}

// differs reports whether two configurations have a section in different forms.
func (p section) differs(was, next types.Config) bool {
	before, after := reflect.ValueOf(p.value(was)), reflect.ValueOf(p.value(next))
	return !reflect.DeepEqual(before.Interface(), after.Interface()) && !(blank(before) && blank(after))
}

// reconcilable returns an error that names each part of a change that no update can apply. The
// node must be installed anew for it, unless the cluster overrides the validation of the part.
func reconcilable(was, next *content, overrides opv1.IrreconcilableValidationOverrides) error {
	var errs []error
	if next.name != "" && was.name != "" && was.spec.FIPS != next.spec.FIPS {
		errs = append(errs, fmt.Errorf("fips changes from %v to %v: detected change to FIPS flag", was.spec.FIPS, next.spec.FIPS))
	}
	for _, p := range irreconcilable {
		if p.differs(was.ignition, next.ignition) && (p.override == "" || !slices.Contains(overrides.Storage, p.override)) {
			errs = append(errs, fmt.Errorf("ignition %s section contains changes", p.name))
		}
	}
	for _, f := range next.ignition.Storage.Files {
		if len(f.Append) > 0 {
			errs = append(errs, fmt.Errorf("ignition file %s includes append: give the whole content", f.Path))
		}
		if f.Path == ForceFile {
			errs = append(errs, fmt.Errorf("cannot create %s through Ignition", ForceFile))
		}
	}
	return errors.Join(append(errs, users(was.ignition.Passwd.Users, next.ignition.Passwd.Users)...)...)
}

func blank(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Len() == 0 || v.IsZero() || v.Kind() == reflect.Struct && blankFields(v)
}

func blankFields(v reflect.Value) bool {
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() > 0 {
			return false
		}
	}
	return true
}

// users compares users: only the SSH keys and the password hash of core may change.
func users(was, next []types.PasswdUser) (errs []error) {
	for _, u := range next {
		if u.Name != coreUser {
			if !slices.ContainsFunc(was, func(o types.PasswdUser) bool { return reflect.DeepEqual(o, u) }) {
				errs = append(errs, fmt.Errorf("ignition passwd user section contains unsupported changes: non-core user %q", u.Name))
			}
			continue
		}
		u.SSHAuthorizedKeys, u.PasswordHash = nil, nil
		if !reflect.DeepEqual(u, types.PasswdUser{Name: coreUser}) {
			errs = append(errs, errors.New("ignition passwd user section contains unsupported changes: only sshAuthorizedKeys and passwordHash of the user core may change"))
		}
	}
	for _, u := range was {
		if u.Name != coreUser && !slices.ContainsFunc(next, func(n types.PasswdUser) bool { return n.Name == u.Name }) {
			errs = append(errs, fmt.Errorf("ignition passwd user section contains unsupported changes: user %q is removed", u.Name))
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errs
}
