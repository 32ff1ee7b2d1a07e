package ilo

import (
	"fmt"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// timeZones are the time zones of iLO in the order of their indexes: the offset from UTC
// and places in the zone [V docs, HpeiLODateTime; NVIDIA/libredfish, tests/mockups/hpe:
// the indexes and offsets; places are a choice of ours]. The clock does not change for
// daylight saving.
var timeZones = []struct{ offset, places string }{
	{"-12:00", "International Date Line West"}, {"-11:00", "Midway Island, Samoa"}, {"-10:00", "Hawaii"}, {"-09:30", "Marquesas"}, {"-09:00", "Alaska"},
	{"-08:00", "Pacific Time, Tijuana"}, {"-07:00", "Mountain Time, Arizona"}, {"-06:00", "Central Time, Central America"}, {"-05:00", "Eastern Time, Bogota, Lima"},
	{"-04:00", "Caracas, Georgetown"}, {"-04:00", "Atlantic Time, Santiago"}, {"-03:30", "Newfoundland"}, {"-03:00", "Brasilia, Buenos Aires"},
	{"-02:00", "Mid-Atlantic"}, {"-01:00", "Azores, Cape Verde"}, {"+00:00", "Greenwich Mean Time, Casablanca"}, {"+00:00", "Dublin, London"},
	{"+01:00", "Amsterdam, Berlin, Paris"}, {"+02:00", "Athens, Cairo, Jerusalem"}, {"+03:00", "Riyadh, Moscow, Istanbul"}, {"+03:30", "Tehran"},
	{"+04:00", "Abu Dhabi, Baku"}, {"+04:30", "Kabul"}, {"+05:00", "Karachi, Tashkent"}, {"+05:30", "Chennai, Mumbai, New Delhi"}, {"+05:45", "Kathmandu"},
	{"+06:00", "Almaty, Dhaka"}, {"+06:30", "Rangoon"}, {"+07:00", "Bangkok, Jakarta"}, {"+08:00", "Beijing, Hong Kong, Perth"}, {"+08:45", "Eucla"},
	{"+09:00", "Tokyo, Seoul"}, {"+09:30", "Adelaide, Darwin"}, {"+10:00", "Sydney, Melbourne"}, {"+10:30", "Lord Howe"}, {"+10:45", "Chatham"},
	{"+11:00", "Magadan, New Caledonia"}, {"+12:00", "Auckland, Fiji"}, {"+13:00", "Nuku'alofa"}, {"+14:00", "Line Islands"}, {"+00:00", unspecifiedZone},
}

const (
	unspecifiedZone = "Unspecified Time Zone"

	storedZone = "TimeZone/Index"
)

// dateTime returns the resource of the BMC's clock [V docs, HpeiLODateTime].
func dateTime(g generation) dialect.Resource {
	all, names, offsets := []any{}, dict{}, dict{}
	for i, z := range timeZones {
		all = append(all, dict{"Index": i, "Name": z.places, "UtcOffset": z.offset, "Value": "UTC" + z.offset})
		names[fmt.Sprint(i)], offsets[fmt.Sprint(i)] = z.places, "UTC"+z.offset
	}
	return dialect.Resource{URI: manager + "/DateTime", Type: g.oem + "iLODateTime.v2_0_0." + g.oem + "iLODateTime", Name: "iLO Date and Time Settings", Set: []propertyRule{
		{Path: "DateTime", From: manager + "#DateTime"}, {Path: "ConfigurationSettings", Value: "Current"}, {Path: "PropagateTimeToHost", Value: false},
		{Path: "TimeZone/Index", Value: len(timeZones) - 1}, {Path: "TimeZone/Index", From: "=" + storedZone},
		{Path: "TimeZone/Name", From: "TimeZone/Index", Map: names, Value: unspecifiedZone},
		{Path: "TimeZone/Value", From: "TimeZone/Index", Map: offsets, Value: "UTC"},
		{Path: "TimeZone/UtcOffset", From: manager + "#DateTimeLocalOffset"}, {Path: "TimeZoneList", Value: all},
		{Path: "StaticNTPServers", From: manager + "/NetworkProtocol#NTP/NTPServers"}, {Path: "NTPServers", From: manager + "/NetworkProtocol#NTP/NTPServers"},
		{Path: "Links/EthernetNICs/@odata.id", Value: manager + "/EthernetInterfaces"},
	}}
}

// dateTimeWrites are the properties of the clock that clients write [V docs; V
// community.general, ilo_redfish_utils.py]. A time zone is chosen by its index or its name.
func dateTimeWrites(g generation) []dialect.WritableProperty {
	of := g.oem + "iLODateTime"
	var zones []dialect.Effect
	for i, z := range timeZones {
		set := []dialect.StandardRequest{patch(manager, dict{"DateTimeLocalOffset": z.offset})}
		zones = append(zones,
			dialect.Effect{When: when("Index", fmt.Sprint(i)), Store: dict{storedZone: i}, Requests: set},
			dialect.Effect{When: when("Name", z.places), Store: dict{storedZone: i}, Requests: set},
		)
	}
	return []dialect.WritableProperty{
		{ResourceType: of, Path: "TimeZone", Type: dialect.ObjectParameter, Effects: zones},
		{ResourceType: of, Path: "StaticNTPServers", Type: dialect.ArrayParameter, Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{
			patch(manager+"/NetworkProtocol", dict{"NTP": dict{"NTPServers": "$"}}),
		}}}},
	}
}
