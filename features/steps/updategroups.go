package steps

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/cucumber/godog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// cordons lists which nodes were cordoned after each change, from a watch.
type cordons struct {
	watch watch.Interface
	ended sync.WaitGroup

	mu      sync.Mutex
	history [][]string // the nodes that are cordoned, in the order in which they were
}

func watchCordons(kube client.WithWatch) (*cordons, error) {
	w, err := kube.Watch(context.Background(), &corev1.NodeList{}) // until stop
	if err != nil {
		return nil, err
	}
	c := &cordons{watch: w}
	c.ended.Go(func() {
		for ev := range w.ResultChan() {
			if n, ok := ev.Object.(*corev1.Node); ok {
				c.saw(n)
			}
		}
	})
	return c, nil
}

func (c *cordons) stop() {
	c.watch.Stop()
	c.ended.Wait()
}

func (c *cordons) saw(n *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var now []string
	if len(c.history) > 0 {
		now = c.history[len(c.history)-1]
	}
	was := slices.Contains(now, n.Name)
	if was == n.Spec.Unschedulable {
		return
	}
	now = slices.DeleteFunc(slices.Clone(now), func(name string) bool { return name == n.Name })
	if !was {
		now = append(now, n.Name)
	}
	c.history = append(c.history, now)
}

// all returns the history.
func (c *cordons) all() [][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.history)
}

// registerUpdateGroups binds the steps on UpdateGroups.
func (s *scenario) registerUpdateGroups(sc *stepRegistry) {
	sc.Step(`^the update group "([^"]*)" has the index (\d+), updates (\d+) at a time and has the machines "([^"]*)"$`, "creates an UpdateGroup of the Cluster, and labels the Machines; nodes are watched from now on", s.createUpdateGroup)
	sc.Step(`^the nodes were cordoned in this order:$`, "waits until each node of the rows (nodes, at most) was cordoned once and no node is; checks that no more than so many nodes of a row were at a time, and none while a node of another row was, or before those of the rows above", s.wereCordoned)
}

func (s *scenario) createUpdateGroup(ctx context.Context, name string, index, concurrent int, machines string) (err error) {
	if s.cordons == nil {
		if s.cordons, err = watchCordons(s.kube); err != nil {
			return err
		}
	}
	g := &kaasv1.UpdateGroup{ObjectMeta: day2Meta(name), Spec: kaasv1.UpdateGroupSpec{Index: index, ConcurrentUpdates: concurrent}}
	g.Labels = map[string]string{clusterv1.ClusterNameLabel: clusterName}
	if err := s.kube.Create(ctx, g); err != nil {
		return err
	}
	for _, machine := range fields(machines) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, kaasv1.UpdateGroupLabel, name)
		if err := s.kube.Patch(ctx, &clusterv1.Machine{ObjectMeta: day2Meta(machine)}, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return err
		}
	}
	return nil
}

// cordonRow is a row of the table of wereCordoned.
type cordonRow struct {
	nodes []string
	most  int
}

func (s *scenario) wereCordoned(ctx context.Context, table *godog.Table) error {
	if s.cordons == nil {
		return fmt.Errorf("no node is watched: create an update group first")
	}
	var rows []cordonRow
	for _, r := range table.Rows[1:] {
		most, err := strconv.Atoi(r.Cells[1].Value)
		if err != nil {
			return fmt.Errorf("at most: %w", err)
		}
		rows = append(rows, cordonRow{fields(r.Cells[0].Value), most})
	}
	if len(rows) == 0 {
		return fmt.Errorf("the table has no row")
	}
	return eventually(ctx, "the nodes were cordoned", func(context.Context) (bool, string, error) {
		all := s.cordons.all()
		done, err := cordonedInOrder(all, rows)
		return done, fmt.Sprint(all), err
	})
}

// cordonedInOrder compares a history with the rows. It reports whether all nodes are through.
func cordonedInOrder(history [][]string, rows []cordonRow) (done bool, err error) {
	row, before := 0, []string(nil)
	times := map[string]int{}
	for _, now := range history {
		for _, name := range now {
			if slices.Contains(before, name) {
				continue
			}
			if times[name]++; times[name] > 1 {
				return false, fmt.Errorf("the node %s was cordoned twice: %v", name, history)
			}
			for row < len(rows) && len(before) == 0 && !slices.Contains(rows[row].nodes, name) && allOnce(times, rows[row].nodes) {
				row++
			}
			if row == len(rows) || !slices.Contains(rows[row].nodes, name) {
				return false, fmt.Errorf("the node %s was cordoned before its turn: %v", name, history)
			}
		}
		if row < len(rows) && len(now) > rows[row].most {
			return false, fmt.Errorf("%d nodes were cordoned at a time, want at most %d: %v", len(now), rows[row].most, history)
		}
		before = now
	}
	for _, r := range rows {
		done = allOnce(times, r.nodes)
		if !done {
			return false, nil
		}
	}
	return len(before) == 0, nil
}

func allOnce(times map[string]int, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return times[name] != 1 })
}
