Feature: Updates of machine configuration that are interrupted
  Whatever ends or blocks the update of a node: the node ends with one configuration, whole, and
  boots no image that its daemon has not verified.

  Background:
    Given a lab with machine configuration
    And the operator has registered the server
    And the server is the node of a pool with a machine-config daemon

  @M39 @fault
  Scenario: Blobs of another digest boot no node
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is built
    When the registry sends damaged blobs
    And the operator resumes the pool
    And minutes pass until the node is Degraded
    Then the node is Degraded: "after 7 attempts"
    And the node is Degraded: "digest mismatch: the registry sends a blob of the digest sha256:"
    And the server has no file "/etc/a.conf"
    When the registry is up
    And ten minutes pass
    Then the pool is Updated with an image
    And the server's file "/etc/a.conf" comes from its image

  @M31
  Scenario: A second change stops the build of the first
    When the operator pauses the pool
    And the registry stalls
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is being built
    When the operator creates a MachineConfig "10-b" with the file "/etc/b.conf" of "2"
    Then the pool's image is being built
    When the registry is up
    Then the pool's image is built
    And one build of the pool has made one image
    When the operator resumes the pool
    Then the pool is Updated with an image
    And the server's file "/etc/a.conf" comes from its image
    And the server's file "/etc/b.conf" comes from its image

  @M38 @killed @sample-1
  Scenario Outline: The controller is killed once <moment>
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    And the controller is killed once <moment>
    Then the pool's image is built
    And one build of the pool has made one image
    When the operator resumes the pool
    Then the pool is Updated with an image
    And the server's file "/etc/a.conf" comes from its image

    Examples:
      | moment             |
      | the build exists   |
      | the image is built |

  @killed @full
  Scenario Outline: The <program> is killed once <moment>
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is built
    When the operator resumes the pool
    And the <program> is killed once <moment>
    Then the pool is Updated with an image
    And one build of the pool has made one image
    And the server's file "/etc/a.conf" comes from its image

    Examples:
      | program    | moment                 |
      | controller | the node has the image |
      | controller | the node is drained    |
      | controller | the server boots       |
      | daemon     | the node has the image |
      | daemon     | the node is drained    |
      | daemon     | the server boots       |

  @M13 @fault
  Scenario: A PodDisruptionBudget blocks the drain of the node
    Given the server's node runs the pod "guarded", which may not be evicted
    When the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    Then the node is Working
    When minutes pass until the node is Degraded
    Then the node is Degraded: "failed to drain node"
    And the pod "guarded" is Running
    When the PodDisruptionBudget of "guarded" is deleted
    Then the pool is Updated without an image
    And the server's file "/etc/a.conf" is "1"
