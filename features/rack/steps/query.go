package steps

import (
	"fmt"
	"strings"
)

func (s *scenario) registerQueries(sc *stepRegistry) {
	sc.NegativeStep(`^each query of ProtocolFeaturesSupported works, and no other$`, s.queriesAreTruthful)
}

// queriesAreTruthful sends a query for each property of ProtocolFeaturesSupported, and
// compares the property with whether the service carries the query out.
func (s *scenario) queriesAreTruthful() error {
	service, err := s.get(root + "/")
	if err != nil {
		return err
	}
	if service.at("ProtocolFeaturesSupported") == nil {
		return fmt.Errorf("the service root has no ProtocolFeaturesSupported: %s", service)
	}
	systems, err := s.get(fmt.Sprint(service.at("Systems/@odata.id")))
	if err != nil {
		return err
	}
	collection, member := fmt.Sprint(systems.at("@odata.id")), fmt.Sprint(systems.at("Members/0/@odata.id"))
	sensors, sensor := "", ""
	if r, err := s.get(member); err == nil && r.at("Links/Chassis/0/@odata.id") != nil {
		if r, err = s.get(fmt.Sprint(r.at("Links/Chassis/0/@odata.id"))); err == nil && r.at("Sensors/@odata.id") != nil {
			sensors = fmt.Sprint(r.at("Sensors/@odata.id"))
			if r, err = s.get(sensors); err == nil {
				sensor = fmt.Sprint(r.at("Members/0/@odata.id"))
			}
		}
	}
	levels, _ := service.at("ProtocolFeaturesSupported/ExpandQuery/MaxLevels").(float64)
	deepest := max(int(levels), 1)
	has := func(path string) func(response) bool {
		return func(r response) bool { _, ok := lookUp(r.body, path); return ok }
	}
	lacks := func(path string) func(response) bool { return func(r response) bool { return !has(path)(r) } }
	for _, q := range []struct {
		feature, uri, query string
		done                func(response) bool
	}{
		{"FilterQuery", collection, "$filter=Id%20eq%20'nobody'", lacks("Members/0")},
		{"FilterQueryComparisonOperations", collection, "$filter=Id%20ge%20'~'", lacks("Members/0")},
		{"FilterQueryCompoundOperations", collection, "$filter=not%20(Id%20ne%20'nobody')", lacks("Members/0")},
		{"SelectQuery", member, "$select=SerialNumber", lacks("PowerState")},
		{"OnlyMemberQuery", collection, "only", has("PowerState")},
		{"TopSkipQuery", collection, "$skip=1", lacks("Members/0")},
		{"ExcerptQuery", sensor, "excerpt", lacks("Id")},
		{"ExpandQuery/NoLinks", collection, "$expand=.", has("Members/0/PowerState")},
		{"ExpandQuery/Links", member, "$expand=~", has("Links/Chassis/0/Id")},
		{"ExpandQuery/ExpandAll", collection, "$expand=*", has("Members/0/PowerState")},
		{"ExpandQuery/Levels", collection, fmt.Sprintf("$expand=.($levels=%d)", deepest), has("Members/0/PowerState")},
	} {
		claimed, listed := service.at("ProtocolFeaturesSupported/" + q.feature).(bool)
		if !listed { // bmcweb has $skip and $filter's operations, and does not list them
			continue
		}
		if q.uri == "" { // this BMC has no sensors in the newer form
			continue
		}
		if err := s.send("GET", q.uri+"?"+q.query, nil); err != nil {
			return err
		}
		r := s.last()
		if done := r.status == 200 && q.done(r); done != claimed {
			return fmt.Errorf("%s is %t, but GET %s?%s is answered with %s", q.feature, claimed, q.uri, q.query, r)
		}
		if !claimed && r.status != 501 && r.status != 400 && r.status != 200 {
			return fmt.Errorf("GET %s?%s is answered with %s", q.uri, q.query, r)
		}
	}
	if levels == 0 {
		return nil
	}
	if err := s.send("GET", fmt.Sprintf("%s?$expand=.($levels=%d)", collection, int(levels)+1), nil); err != nil {
		return err
	}
	if r := s.last(); r.status != 400 || !strings.Contains(r.text, "OutOfRange") {
		return fmt.Errorf("$levels above MaxLevels, %v, is answered with %s", levels, r)
	}
	return nil
}
