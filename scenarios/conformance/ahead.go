package conformance

import (
	"context"
	"strings"
	"sync"
)

// readAhead reads resources that the check asks for by Page next, some at once. It is for walks
// of hundreds of resources, which last a minute otherwise on a BMC that takes a tenth of a second
// for each. Requests are serial unless NET-005 has shown in this run that the BMC takes parallel
// ones, and until it is too busy for them; the rate limit of the run holds for both. What can't
// be read now, Page reads and reports.
func (r *Run) readAhead(ctx context.Context, uris []string) {
	if !r.bmc.parallel || r.bmc.dry != nil {
		return
	}
	todo := make(chan string, len(uris))
	for _, uri := range uris {
		if r.bmc.pages[uri] == nil && strings.HasPrefix(uri, "/") && len(r.bmc.pages)+len(todo) < maxPages {
			todo <- uri
		}
	}
	close(todo)
	if len(todo) < 2 {
		return
	}
	r.bmc.login(ctx, r) // before the readers begin
	r.Use(Connections{Parallel: parallelReaders})
	defer r.Use(Connections{})
	var mu sync.Mutex
	var readers sync.WaitGroup
	for range parallelReaders {
		readers.Go(func() {
			for uri := range todo {
				p, err := r.fetch(ctx, uri)
				mu.Lock()
				if err != nil || p.resp == nil || tooBusy(p.resp) {
					r.bmc.parallel = false
				}
				on := r.bmc.parallel
				if on {
					r.bmc.pages[uri] = p
				}
				mu.Unlock()
				if !on {
					return
				}
			}
		})
	}
	readers.Wait()
}
