package item

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"github.com/Masterminds/semver/v3"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// exemptParams are the params that agents after a version leave out of the hash. Their values
// depend on the cluster's other machines, and a change of them must not execute an item again.
var exemptParams = []struct {
	after string // the last version of the agent that hashes them
	names []string
}{
	{"0.3.0-187", []string{"controlNodeIP", "ucp_tag", "target_release", "release_needs_upgrade"}},
	{"0.3.0-257", []string{"ucp_lb", "supplementary_addresses_in_ssl_keys", "mirrors_mgmt_disabled"}},
}

// Hash returns the hash of a state item as an agent of a version computes it: the SHA-256
// of the item's JSON, in hexadecimal. "" is the newest version. The deadline of a host OS item is
// not in it: another one executes nothing again. That of other items is, as it always was.
func Hash(it lcmv1.LCMStateItem, agentVersion string) string {
	params := maps.Clone(it.Params)
	for _, exempt := range exemptParams {
		if newer(agentVersion, exempt.after) {
			for _, name := range exempt.names {
				delete(params, name)
			}
		}
	}
	if IsHostOSName(it.Name) {
		delete(params, ParamTimeout)
	}
	it.Params = params
	b, err := json.Marshal(it) // it sorts the names of params
	if err != nil {
		panic(err) // strings cannot fail to encode
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// newer reports whether an agent's version is later than another, by SemVer: the number of
// a build follows a dash, so that 0.3.0-300 is later than 0.3.0-187. A text that
// is no version, such as "", is a build of a developer and counts as the newest.
func newer(version, than string) bool {
	v, err := semver.NewVersion(version)
	return err != nil || v.GreaterThan(semver.MustParse(than))
}

// Ready reports whether an item with its present hash has succeeded.
func Ready(it lcmv1.LCMStateItem, statuses map[string]lcmv1.StateItemStatus, agentVersion string) bool {
	status, executed := statuses[it.Name]
	return executed && status.ExitCode == 0 && status.Hash == Hash(it, agentVersion)
}
