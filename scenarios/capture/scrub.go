package capture

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/natural"
)

// Scrub replaces the values of a capture that identify a server, its owner or
// its network: serial numbers, UUIDs, MAC addresses, world wide names, IP
// addresses, host names, service and asset tags, licence keys, names of users,
// contacts, passwords, and all certificates but those of secure boot. A value is
// replaced by a placeholder of its kind, and by the same one everywhere: in other
// texts and in the URIs of resources, too.
func (c *Capture) Scrub() {
	s := &scrubber{replacements: map[string]string{}, counts: map[kind]int{}, taken: map[string]bool{}}
	for at, body := range c.Resources {
		s.notePlaceholders(at)
		s.notePlaceholders(body)
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.Resources), natural.Compare) {
		if isSecureBootKey(at, Type(c.Resources[at])) {
			continue // a vendor's key identifies no server
		}
		s.collect("", c.Resources[at], c.Resources[at])
	}
	s.sortValues()
	pages, refused := map[string]map[string]any{}, map[string]int{}
	for at, body := range c.Resources {
		clean, _ := s.scrub("", body, isSecureBootKey(at, Type(body))).(map[string]any)
		pages[s.scrubURI(at)] = clean
	}
	for at, status := range c.Refused {
		refused[s.scrubURI(at)] = status
	}
	c.Resources, c.Refused = pages, refused
}

// kind is the kind of a value. It decides about the placeholder.
type kind string

const (
	harmless kind = "" // it may stay
	serial   kind = "serial"
	uuid     kind = "uuid"
	mac      kind = "mac"
	wwn      kind = "wwn"
	ipv4     kind = "ipv4"
	ipv6     kind = "ipv6"
	host     kind = "host"
	tag      kind = "tag"
	person   kind = "person"
	removed  kind = "removed" // nothing takes its place
)

// names tell the kind of a value by the name of its property. The first that
// matches counts.
var names = []struct {
	is *regexp.Regexp
	of kind
}{
	// Names that resemble the ones below, but hold nothing that identifies.
	{regexp.MustCompile(`(?i)(serialconsole|serialinterface|addressorigin|addressstate|macsec|hostname.*status|passwordlength|minpassword|password(change|expiration|exchange)|tokenreq|userlabel|locationindicator|servicelabel|locationtype|locationordinal|part ?location|serialnumber.*(supported|support|format)|^language|type$|mode$|enabled?$|supported$|count$|status$|origin$|format$|length$|policy$|units?$|rank$|source$|timeout|allowable)`), harmless},
	{regexp.MustCompile(`(?i)(password|passphrase|secret|^token$|authtoken|privatekey|certificatestring|encryptionkey|^key$|fingerprint|thumbprint|^organization(alunit)?$|^displaystring$|bindpw|communitystring|^community)`), removed},
	{regexp.MustCompile(`(?i)(licen[sc]e|entitlement|activation).*(key|code|string|id|data|number)|^licen[sc]e$|fqdd?licen`), tag},
	{regexp.MustCompile(`(?i)(serial_?(no|num|number)?$|^sn$|serialnumber|servicetag|chassistag|expressservicecode|nodeid$|ppin|boardserial|deviceserial)`), serial},
	{regexp.MustCompile(`(?i)(uuid|guid)`), uuid},
	{regexp.MustCompile(`(?i)(mac(s|addr|address(es)?)?$|macaddr|permanentmac)`), mac},
	{regexp.MustCompile(`(?i)(wwn|wwpn|wwnn|wwid|durablename|sasaddress|naa|eui64|iscsiname|iqn|initiatorname|targetname)`), wwn},
	{regexp.MustCompile(`(?i)(host_?name|fqdn|domainname|^domain$|dnsname|racname|rackname|datacenter|^room|^aisle|^row$|systemlocation|serverlocation|netbios)`), host},
	{regexp.MustCompile(`^(CommonName|AlternativeNames)$`), host},
	{regexp.MustCompile(`(?i)(asset_?tag|asset_?owner|owner|servername|systemname|chassisname|purchase|leaseinfo)`), tag},
	{regexp.MustCompile(`(?i)(user_?name|^users?$|email|mailaddress|contact|phone|recipient|sender|adminname|createdby|street|postal|^city$|building|territory|country|placement|latitude|longitude)`), person},
}

// valuePatterns tell the kind of a value by its form, whatever its property.
var valuePatterns = []struct {
	is *regexp.Regexp
	of kind
}{
	{regexp.MustCompile(`\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b`), uuid},
	{regexp.MustCompile(`\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b`), mac},
}

var (
	v4 = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	v6 = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){0,7}(?:::)?`)
	// versionProperty matches properties in whose values four numbers are a
	// version and no IPv4 address.
	versionProperty = regexp.MustCompile(`(?i)(version|revision|release|level|microcode|build|^name$|^id$|softwareid|description|@odata|help|mask$)`)
	meaningless     = regexp.MustCompile(`(?i)^(|n/?a|none|null|unknown|not ?(available|specified|set|present)|to be filled.*|default.*|system|chassis|0+|[-.: x0]+|ok|true|false|x+|f+|(00[:-]){5}00|(ff[:-]){5}ff|0\.0\.0\.0|::|255\..*|127\.0\.0\.1|::1|localhost|self|root|admin|administrator|operator|[a-z]{1,3}|\d{1,3})$`)
	// signatureOwner names the vendor that signed a key of secure boot. It is no
	// person.
	signatureOwner = "UefiSignatureOwner"
)

// isSecureBootKey reports whether a resource is a key of secure boot.
func isSecureBootKey(at, kind string) bool {
	return strings.Contains(at, "/SecureBootDatabases/") && (kind == "Certificate" || kind == "Signature")
}

type scrubber struct {
	replacements map[string]string // what takes their place
	order        []string          // values, the longest first
	counts       map[kind]int
	taken        map[string]bool // placeholders in use
}

// placeholder matches the placeholders of an earlier Scrub: an emulated BMC that
// was recorded from another one shows them.
var placeholder = regexp.MustCompile(`(?i)\b(ANON\d{6}|00000000-0000-4000-8000-\d{12}|02[:-]00[:-]00[:-]00[:-][0-9a-f]{2}[:-][0-9a-f]{2}|(0x)?0200000000[0-9a-f]{2}|(0x)?3000000000[0-9a-f]{6}|30([:-]00){4}([:-][0-9a-f]{2}){3}|192\.0\.2\.\d+|2001:db8::[0-9a-f]+|anon-(host|tag|person)-\d+)\b`)

// notePlaceholders collects the placeholders in a value. They stay unchanged.
func (s *scrubber) notePlaceholders(v any) {
	switch x := v.(type) {
	case map[string]any:
		for _, below := range x {
			s.notePlaceholders(below)
		}
	case []any:
		for _, e := range x {
			s.notePlaceholders(e)
		}
	case string:
		for _, found := range placeholder.FindAllString(x, -1) {
			s.taken[strings.ToLower(found)] = true
		}
	}
}

// kindsByName caches the kinds of property names: a capture has many values under
// few names.
var kindsByName sync.Map

// unknown is the kind of a name that does not tell the kind of its value.
const unknown kind = "unknown"

// kindOf returns the kind of a property's value.
func kindOf(name, value string) kind {
	if name == signatureOwner || strings.HasPrefix(name, "@odata") {
		return harmless
	}
	bare := name[strings.LastIndexAny(name, ".@#")+1:]
	if of, ok := kindsByName.Load(bare); ok {
		if of.(kind) != unknown {
			return of.(kind)
		}
	} else {
		of := unknown
		for _, n := range names {
			if n.is.MatchString(bare) {
				of = n.of
				break
			}
		}
		if len(bare) < 40 { // longer names are values, and there are many
			kindsByName.Store(bare, of)
		}
		if of != unknown {
			return of
		}
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(value, "/")); err == nil && !versionProperty.MatchString(bare) {
		if a.Is4() {
			return ipv4
		}
		return ipv6
	}
	return harmless
}

// collect finds the values that must be replaced.
func (s *scrubber) collect(name string, v any, page map[string]any) {
	switch x := v.(type) {
	case map[string]any:
		for _, n := range slices.Sorted(maps.Keys(x)) {
			under := n
			if len(n) <= 3 || n == "Value" || n == "CurrentValue" || n == "Name" && x["Value"] != nil {
				under = name // such a name does not tell the kind
			}
			s.collect(under, x[n], page)
		}
		// Vendors list properties as pairs of Name and Value.
		if n, value := text(x, "Name"), text(x, "Value"); n != "" && value != "" {
			s.collect(n, value, page)
		}
	case []any:
		for _, e := range x {
			s.collect(name, e, page)
		}
	case string:
		of := kindOf(name, x)
		if name == "SKU" && strings.Contains(strings.ToLower(text(page, "Manufacturer")+text(page, "Model")), "dell") {
			of = serial // Dell shows the service tag as SKU
		}
		if of != harmless && of != removed {
			s.add(x, of)
		}
		for _, t := range valuePatterns {
			if name == signatureOwner {
				break
			}
			for _, found := range t.is.FindAllString(x, -1) {
				s.add(found, t.of)
			}
		}
		if !versionProperty.MatchString(name) {
			for _, found := range v4.FindAllString(x, -1) {
				if _, err := netip.ParseAddr(found); err == nil {
					s.add(found, ipv4)
				}
			}
			for _, found := range v6.FindAllString(x, -1) {
				if a, err := netip.ParseAddr(found); err == nil && a.Is6() {
					s.add(found, ipv6)
				}
			}
		}
	}
}

// add assigns a placeholder to a value.
func (s *scrubber) add(value string, of kind) {
	if value = strings.TrimSpace(value); meaningless.MatchString(value) {
		return
	}
	key := strings.ToLower(value)
	if _, known := s.replacements[key]; known || placeholder.FindString(value) == value {
		return
	}
	to := s.newPlaceholder(of, key)
	for s.taken[strings.ToLower(to)] {
		to = s.newPlaceholder(of, key)
	}
	s.replacements[key] = to
	if of == mac || of == wwn {
		from, into := separators.ReplaceAllString(key, ""), separators.ReplaceAllString(to, "")
		for _, form := range notations {
			if f := form(from); hexadecimal.MatchString(from) && s.replacements[f] == "" {
				s.replacements[f] = form(into)
			}
		}
	}
}

// notations are the other ways to write a MAC address or a world wide name, as
// in UEFI device paths.
var notations = []func(digits string) string{
	func(d string) string { return d },
	func(d string) string { return "0x" + d },
	func(d string) string { return inPairs(d, "-") },
	func(d string) string { return inPairs(d, ":") },
}

var (
	separators  = regexp.MustCompile(`[:-]|^0x|^naa\.|^eui\.`)
	hexadecimal = regexp.MustCompile(`^([0-9a-f]{2}){6,16}$`)
)

func inPairs(digits, between string) string {
	var out []string
	for i := 0; i+1 < len(digits); i += 2 {
		out = append(out, digits[i:i+2])
	}
	return strings.Join(out, between)
}

// newPlaceholder returns an unused placeholder of a kind.
func (s *scrubber) newPlaceholder(of kind, key string) string {
	s.counts[of]++
	n := s.counts[of]
	var to string
	switch of {
	case serial:
		to = fmt.Sprintf("ANON%06d", n)
	case uuid:
		to = fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
	case mac:
		to = fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8&0xff, n&0xff)
		if strings.Contains(key, "-") {
			to = strings.ReplaceAll(to, ":", "-")
		}
	case wwn:
		to = fmt.Sprintf("3000000000%06x", n)
		switch {
		case strings.HasPrefix(key, "iqn."):
			to = fmt.Sprintf("iqn.2000-01.com.example:%d", n)
		case strings.Contains(key, ":"): // a SAS address with colons
			to = fmt.Sprintf("30:00:00:00:00:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff)
		}
	case ipv4:
		to = fmt.Sprintf("192.0.2.%d", n%255) // RFC 5737
	case ipv6:
		to = fmt.Sprintf("2001:db8::%x", n) // RFC 3849
	case host:
		to = fmt.Sprintf("anon-host-%d", n)
	case tag:
		to = fmt.Sprintf("anon-tag-%d", n)
	case person:
		to = fmt.Sprintf("anon-person-%d", n)
	}
	return to
}

// sortValues orders the values by length, the longest first, since one may
// contain another.
func (s *scrubber) sortValues() {
	for value := range s.replacements {
		s.order = append(s.order, value)
	}
	slices.SortFunc(s.order, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// scrubText returns a text with placeholders for the values in it.
func (s *scrubber) scrubText(t string) string {
	low := strings.ToLower(t)
	if len(low) != len(t) { // the folded text has other offsets
		low = t
	}
	var b strings.Builder
	for i := 0; i < len(t); {
		hit := ""
		if i == 0 || !wordByte(low[i-1]) || !wordByte(low[i]) {
			for _, value := range s.order {
				if strings.HasPrefix(low[i:], value) && (i+len(value) == len(low) || !wordByte(low[i+len(value)]) || !wordByte(value[len(value)-1])) {
					hit = value
					break
				}
			}
		}
		if hit == "" {
			b.WriteByte(t[i])
			i++
			continue
		}
		b.WriteString(s.replacements[hit])
		i += len(hit)
	}
	return b.String()
}

func wordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// scrubURI returns a URI with placeholders for the values in its segments.
func (s *scrubber) scrubURI(at string) string {
	parts := strings.Split(at, "/")
	for i := range parts {
		parts[i] = s.scrubText(parts[i])
	}
	return strings.Join(parts, "/")
}

// scrub returns a property's value with placeholders for the values in it. With
// keys it changes URIs only: the resource is a key of secure boot.
func (s *scrubber) scrub(name string, v any, keys bool) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for n, below := range x {
			out[s.scrubText(n)] = s.scrub(n, below, keys)
		}
		if value := text(x, "Value"); value != "" && kindOf(text(x, "Name"), value) == removed {
			out["Value"] = "removed"
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = s.scrub(name, x[i], keys)
		}
		return out
	case string:
		switch {
		case strings.HasPrefix(x, "/"):
			return s.scrubURI(x)
		case keys:
			return x
		case kindOf(name, x) == removed:
			if x == "" {
				return x
			}
			return "removed"
		}
		return s.scrubText(x)
	}
	return v
}
