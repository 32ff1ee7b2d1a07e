package sandbox

import "iter"

// over is the files of a base, with those that a system has of its own over them.
type over struct {
	own  Tree
	base lower
}

func (o over) node(name string) (Node, bool) {
	if n, ok := o.own[name]; ok {
		return n, true
	}
	return o.base.node(name)
}

func (o over) below(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range o.own.below(dir) {
			if !yield(name) {
				return
			}
		}
		for name := range o.base.below(dir) {
			if !yield(name) {
				return
			}
		}
	}
}
