package capture

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Scrub takes out of a capture what tells one server, its owner and its network
// from others: serial numbers, UUIDs, MAC addresses and world wide names,
// addresses, host names, service and asset tags, licence keys, names of users,
// contacts, passwords, and certificates but those of secure boot. Each is
// replaced by something of its kind, the same by the same wherever it stands:
// in other texts and in addresses of resources, too.
func (c *Capture) Scrub() {
	s := &scrubber{values: map[string]string{}, counts: map[kind]int{}, taken: map[string]bool{}}
	for at, body := range c.Pages {
		s.standIns(at)
		s.standIns(body)
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.Pages), Natural) {
		if isKey(at, Type(c.Pages[at])) {
			continue // it is the vendor's
		}
		s.collect("", c.Pages[at], c.Pages[at])
	}
	s.ready()
	pages, refused := map[string]map[string]any{}, map[string]int{}
	for at, body := range c.Pages {
		clean, _ := s.scrubbed("", body, isKey(at, Type(body))).(map[string]any)
		pages[s.address(at)] = clean
	}
	for at, status := range c.Refused {
		refused[s.address(at)] = status
	}
	c.Pages, c.Refused = pages, refused
}

// kind is what a value is, and so what it is replaced by.
type kind string

const (
	open    kind = "" // it may stay
	serial  kind = "serial"
	uuid    kind = "uuid"
	mac     kind = "mac"
	wwn     kind = "wwn"
	ipv4    kind = "ipv4"
	ipv6    kind = "ipv6"
	host    kind = "host"
	tag     kind = "tag"
	person  kind = "person"
	removed kind = "removed" // nothing takes its place
)

// names are properties by which a value is known. The first that fits counts.
var names = []struct {
	is *regexp.Regexp
	of kind
}{
	// What looks alike and is none.
	{regexp.MustCompile(`(?i)(serialconsole|serialinterface|addressorigin|addressstate|macsec|hostname.*status|passwordlength|minpassword|password(change|expiration|exchange)|tokenreq|userlabel|locationindicator|servicelabel|locationtype|locationordinal|part ?location|serialnumber.*(supported|support|format)|^language|type$|mode$|enabled?$|supported$|count$|status$|origin$|format$|length$|policy$|units?$|rank$|source$|timeout|allowable)`), open},
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

// texts are what values of their kind look like, wherever they stand.
var texts = []struct {
	is *regexp.Regexp
	of kind
}{
	{regexp.MustCompile(`\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b`), uuid},
	{regexp.MustCompile(`\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b`), mac},
}

var (
	v4 = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	v6 = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){0,7}(?:::)?`)
	// versioned are properties in whose values four numbers are a version.
	versioned = regexp.MustCompile(`(?i)(version|revision|release|level|microcode|build|^name$|^id$|softwareid|description|@odata|help|mask$)`)
	nothing   = regexp.MustCompile(`(?i)^(|n/?a|none|null|unknown|not ?(available|specified|set|present)|to be filled.*|default.*|system|chassis|0+|[-.: x0]+|ok|true|false|x+|f+|(00[:-]){5}00|(ff[:-]){5}ff|0\.0\.0\.0|::|255\..*|127\.0\.0\.1|::1|localhost|self|root|admin|administrator|operator|[a-z]{1,3}|\d{1,3})$`)
	// keysOwner is who signs for keys of secure boot: a vendor, not a user.
	keysOwner = "UefiSignatureOwner"
)

// isKey says whether a resource is a key of secure boot.
func isKey(at, kind string) bool {
	return strings.Contains(at, "/SecureBootDatabases/") && (kind == "Certificate" || kind == "Signature")
}

type scrubber struct {
	values map[string]string // what takes their place
	order  []string          // values, the longest first
	counts map[kind]int
	taken  map[string]bool // what stands for something already
}

// standIn is what stands for something that was taken out: of a BMC that was
// recorded and is emulated.
var standIn = regexp.MustCompile(`(?i)\b(ANON\d{6}|00000000-0000-4000-8000-\d{12}|02[:-]00[:-]00[:-]00[:-][0-9a-f]{2}[:-][0-9a-f]{2}|(0x)?0200000000[0-9a-f]{2}|(0x)?3000000000[0-9a-f]{6}|30([:-]00){4}([:-][0-9a-f]{2}){3}|192\.0\.2\.\d+|2001:db8::[0-9a-f]+|anon-(host|tag|person)-\d+)\b`)

// standIns notes those of a value, which stay.
func (s *scrubber) standIns(v any) {
	switch x := v.(type) {
	case map[string]any:
		for _, below := range x {
			s.standIns(below)
		}
	case []any:
		for _, e := range x {
			s.standIns(e)
		}
	case string:
		for _, found := range standIn.FindAllString(x, -1) {
			s.taken[strings.ToLower(found)] = true
		}
	}
}

// known are the kinds of names that were seen: there are many values of few
// names.
var known sync.Map

// unknown is a name that says nothing.
const unknown kind = "unknown"

// kindOf is what a value under a name is.
func kindOf(name, value string) kind {
	if name == keysOwner || strings.HasPrefix(name, "@odata") {
		return open
	}
	bare := name[strings.LastIndexAny(name, ".@#")+1:]
	if of, ok := known.Load(bare); ok {
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
		if len(bare) < 40 { // names that are values are many
			known.Store(bare, of)
		}
		if of != unknown {
			return of
		}
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(value, "/")); err == nil && !versioned.MatchString(bare) {
		if a.Is4() {
			return ipv4
		}
		return ipv6
	}
	return open
}

// collect finds the values that must go.
func (s *scrubber) collect(name string, v any, page map[string]any) {
	switch x := v.(type) {
	case map[string]any:
		for _, n := range slices.Sorted(maps.Keys(x)) {
			under := n
			if len(n) <= 3 || n == "Value" || n == "CurrentValue" || n == "Name" && x["Value"] != nil {
				under = name // it says nothing of its own
			}
			s.collect(under, x[n], page)
		}
		// Vendors list properties as pairs.
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
			of = serial // it is the service tag there
		}
		if of != open && of != removed {
			s.add(x, of)
		}
		for _, t := range texts {
			if name == keysOwner {
				break
			}
			for _, found := range t.is.FindAllString(x, -1) {
				s.add(found, t.of)
			}
		}
		if !versioned.MatchString(name) {
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

// add gives a value what takes its place.
func (s *scrubber) add(value string, of kind) {
	if value = strings.TrimSpace(value); nothing.MatchString(value) {
		return
	}
	key := strings.ToLower(value)
	if _, known := s.values[key]; known || standIn.FindString(value) == value {
		return
	}
	to := s.next(of, key)
	for s.taken[strings.ToLower(to)] {
		to = s.next(of, key)
	}
	s.values[key] = to
	if of == mac || of == wwn {
		from, into := pairs.ReplaceAllString(key, ""), pairs.ReplaceAllString(to, "")
		for _, form := range forms {
			if f := form(from); hexadecimal.MatchString(from) && s.values[f] == "" {
				s.values[f] = form(into)
			}
		}
	}
}

// forms are how else an address or a name of numbers is written, in device paths
// and elsewhere.
var forms = []func(digits string) string{
	func(d string) string { return d },
	func(d string) string { return "0x" + d },
	func(d string) string { return inPairs(d, "-") },
	func(d string) string { return inPairs(d, ":") },
}

var (
	pairs       = regexp.MustCompile(`[:-]|^0x|^naa\.|^eui\.`)
	hexadecimal = regexp.MustCompile(`^([0-9a-f]{2}){6,16}$`)
)

func inPairs(digits, between string) string {
	var out []string
	for i := 0; i+1 < len(digits); i += 2 {
		out = append(out, digits[i:i+2])
	}
	return strings.Join(out, between)
}

// next is a new one of a kind.
func (s *scrubber) next(of kind, key string) string {
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

// ready orders the values: one may be in another.
func (s *scrubber) ready() {
	for value := range s.values {
		s.order = append(s.order, value)
	}
	slices.SortFunc(s.order, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// text is a text without what must go.
func (s *scrubber) text(t string) string {
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
		b.WriteString(s.values[hit])
		i += len(hit)
	}
	return b.String()
}

func wordByte(c byte) bool { return digit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// address is an address without what must go.
func (s *scrubber) address(at string) string {
	parts := strings.Split(at, "/")
	for i := range parts {
		parts[i] = s.text(parts[i])
	}
	return strings.Join(parts, "/")
}

// scrubbed is a value without what must go.
func (s *scrubber) scrubbed(name string, v any, keys bool) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for n, below := range x {
			out[s.text(n)] = s.scrubbed(n, below, keys)
		}
		if value := text(x, "Value"); value != "" && kindOf(text(x, "Name"), value) == removed {
			out["Value"] = "removed"
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = s.scrubbed(name, x[i], keys)
		}
		return out
	case string:
		switch {
		case strings.HasPrefix(x, "/"):
			return s.address(x)
		case keys:
			return x
		case kindOf(name, x) == removed:
			if x == "" {
				return x
			}
			return "removed"
		}
		return s.text(x)
	}
	return v
}
