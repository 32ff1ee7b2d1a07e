// Package docs holds the documents. Its tests generate the parts of them that
// follow from the code, and check the others against it.
package docs
