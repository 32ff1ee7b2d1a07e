package idrac

import (
	"fmt"
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// The attributes of the time servers, which are those of the standard's
// ManagerNetworkProtocol.NTP.
const ntpEnable = "NTPConfigGroup.1.NTPEnable"

var ntpServers = []string{"NTPConfigGroup.1.NTP1", "NTPConfigGroup.1.NTP2", "NTPConfigGroup.1.NTP3"}

// storedServers is the name under which the attributes of the time servers are stored.
// NTPServers of the standard has no empty places, the attributes have.
const storedServers = "NTPConfigGroup"

// timeServers returns the values of the attributes of the time servers: as they were
// written, unless NTPServers has other servers since.
func timeServers(c dialect.HookContext) []string {
	out := make([]string, len(ntpServers))
	stored, _ := c.Stored[storedServers].([]any)
	for i := range min(len(stored), len(out)) {
		out[i], _ = stored[i].(string)
	}
	present := c.BMC.Network().TimeServers
	if slices.Equal(withoutEmpty(out), present) {
		return out
	}
	clear(out)
	copy(out, present)
	return out
}

// withoutEmpty returns the texts that are not empty.
func withoutEmpty(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "" })
}

// readTimeServers returns the attributes of the time servers.
func readTimeServers(c dialect.HookContext) map[string]any {
	all := map[string]any{}
	for i, server := range timeServers(c) {
		all[ntpServers[i]] = server
	}
	return map[string]any{"Attributes": all}
}

// writeTimeServers sets time servers, by the names of their attributes.
func writeTimeServers(c dialect.HookContext, sent map[string]any) dialect.Effect {
	values := map[string]string{}
	for name, v := range sent {
		values[name] = fmt.Sprint(v)
	}
	stored, request := setTimeServers(c, values)
	return dialect.Effect{Store: map[string]any{storedServers: stored}, Requests: []dialect.StandardRequest{request}}
}

// setTimeServers returns what is stored, and the request to the standard service, when
// attributes of time servers get values.
func setTimeServers(c dialect.HookContext, values map[string]string) (stored []any, request dialect.StandardRequest) {
	all := timeServers(c)
	for i, name := range ntpServers {
		if v, ok := values[name]; ok {
			all[i] = v
		}
		stored = append(stored, all[i])
	}
	servers := []any{}
	for _, s := range withoutEmpty(all) {
		servers = append(servers, s)
	}
	return stored, dialect.StandardRequest{Method: "PATCH", URI: manager + "/NetworkProtocol", Body: map[string]any{"NTP": map[string]any{"NTPServers": servers}}}
}
