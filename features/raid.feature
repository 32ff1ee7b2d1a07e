Feature: RAID
  Volumes are created before provisioning: by the RAID controller, through the BMC,
  or by Linux md, whose superblocks the agent writes.

  # B-170 B-173 B-174 B-176 B-52
  @sample-2
  Scenario Outline: A volume of level <level> survives the loss of <lost> drives
    Given a lab with 1 server of the model "<model>"
    And the operator has registered the server
    When the operator sets hardware RAID:
      """
      - {level: "<level>", sizeGibibytes: 100, rotational: <turning>}
      """
    Then the host is prepared with the RAID
    And the server has the volumes "<level>"
    When "the books" is written to volume 1
    And <lost> of the drives of volume 1 fail
    Then volume 1 is degraded
    And volume 1 holds "the books"
    When the failed drives are replaced
    And 100 hours pass
    Then volume 1 is healthy
    And volume 1 holds "the books"
    When 1 of the other drives of volume 1 fail
    Then volume 1 holds "the books"

    Examples:
      | level | turning | lost | model  |
      | 1     | true    | 1    | raid   |
      | 5     | false   | 1    | raid   |
      | 6     | true    | 2    | raid   |
      | 1+0   | false   | 1    | raid   |
      | 5+0   | true    | 1    | raid16 |
      | 6+0   | true    | 2    | raid16 |

  # B-52 B-53 B-170 B-173
  Scenario Outline: Volumes are created, replaced and deleted
    Given a lab with 1 server of the model "<model>"
    And the operator has registered the server
    When resets of the server are counted
    And the operator sets hardware RAID:
      """
      - {level: "1", name: system, controller: "<controller>", physicalDisks: [<first>, <second>]}
      """
    Then the host is prepared with the RAID
    And the server has the volumes "1"
    And volume 1 has the drives "<first>, <second>"
    And the server was reset <resets> times
    When the operator sets hardware RAID:
      """
      - {level: "5", controller: "<controller>"}
      """
    Then the host is prepared with the RAID
    And the server has the volumes "5"
    When the operator removes the hardware RAID
    Then the host is prepared with the RAID
    And the server has no volumes

    Examples: immediate
      | model | controller      | first  | second | resets |
      | raid  | RAID Controller | Disk.6 | Disk.7 | 0      |

    Examples: with the next reset only
      | model | controller        | first  | second | resets |
      | raid2 | RAID Controller 1 | Disk.2 | Disk.3 | 1      |

    Examples: job-driven
      | model | controller        | first  | second | resets |
      | raid2 | RAID Controller 2 | Disk.6 | Disk.7 | 0      |

  # B-52 B-53
  Scenario: The controller is killed while volumes wait for a reset
    Given a lab with 1 server of the model "raid2"
    And the operator has registered the server
    When the operator sets hardware RAID:
      """
      - {level: "1", controller: "1"}
      - {level: "1", controller: "2"}
      """
    And preparing has begun
    And the controller is killed
    And another controller starts
    Then the host is prepared with the RAID
    And the server has the volumes "1, 1"

  # B-170 B-176
  Scenario: A volume of level 0 does not survive the loss of a drive
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator sets hardware RAID:
      """
      - {level: "0", sizeGibibytes: 100, numberOfPhysicalDisks: 2}
      """
    Then the host is prepared with the RAID
    When "the books" is written to volume 1
    And 1 of the drives of volume 1 fail
    Then volume 1 cannot be read

  # B-55 B-163 B-170 B-173 B-174 B-65 and statement D3
  Scenario: The first volume is the root device
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator sets hardware RAID:
      """
      - {level: "1", name: system, sizeGibibytes: 200, rotational: false, controller: "1", physicalDisks: [Disk.6, Disk.7]}
      - {level: "0", sizeGibibytes: 10, numberOfPhysicalDisks: 1}
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server has the volumes "1, 0"
    And volume 1 has the drives "Disk.6, Disk.7"
    And volume 1 begins with the image
    And the server runs from volume 1
    And the host has no root device hints
    When the operator removes the image
    Then the host becomes "available"
    And the server has the volumes "1, 0"
    When the operator removes the hardware RAID
    Then the host is prepared with the RAID
    And the server has no volumes

  # B-171 B-172 B-176 B-53
  @sample-3
  Scenario Outline: Impossible RAID is reported: <message>
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator sets <kind> RAID:
      """
      - <volume>
      """
    Then the host reports "preparation error"
    And the host's error message contains "<message>"
    And the server has no volumes
    When the operator sets hardware RAID:
      """
      - {level: "1"}
      """
    Then the host is prepared with the RAID
    And the host reports no error
    And the server has the volumes "1"

    Examples:
      | kind     | volume                                                              | message                                                            |
      | hardware | {level: "2"}                                                        | level 2 is not offered: use one of the levels 0, 1, 5, 6, 1+0      |
      | hardware | {level: "5", numberOfPhysicalDisks: 2}                              | level 5 needs 3 physical disks, not 2                              |
      | hardware | {level: "5+0"}                                                      | level 5+0 needs 6 physical disks of one kind, and 4 are free       |
      | hardware | {level: "6+0", rotational: true}                                    | level 6+0 needs 8 physical disks of one kind (hdd), and 4 are free |
      | hardware | {level: "1", sizeGibibytes: 9000}                                   | no 2 free physical disks are large enough for 9000 GiB at level 1  |
      | hardware | {level: "1", controller: "7"}                                       | there is no controller 7                                           |
      | hardware | {level: "1", controller: "1", physicalDisks: [Disk.0, Disk.99]}     | controller 1 has no physical disk Disk.99                          |
      | software | {level: "1", sizeGibibytes: 90000}                                  | on each of 12 disks                                                |
      | software | {level: "1", physicalDisks: [{serialNumber: x}, {serialNumber: y}]} | no disk matches the root device hints                              |

  # B-53 B-171 B-172 B-173
  Scenario Outline: RAID that the server can never have is reported once: <message>
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator sets <kind> RAID:
      """
      - <volume>
      """
    Then the host reports "preparation error"
    And the host's error message contains "<message>"
    When 100 hours pass
    Then its error count is 1
    And the host stays "preparing"
    And the server has no volumes
    When the operator sets hardware RAID:
      """
      - {level: "1"}
      """
    Then the host is prepared with the RAID
    And the host reports no error
    And the server has the volumes "1"

    Examples:
      | kind     | volume                                                              | message                                                       |
      | hardware | {level: "2"}                                                        | level 2 is not offered: use one of the levels 0, 1, 5, 6, 1+0 |
      | hardware | {level: "5", numberOfPhysicalDisks: 2}                              | level 5 needs 3 physical disks, not 2                         |
      | hardware | {level: "5+0"}                                                      | level 5+0 needs 6 physical disks of one kind, and 4 are free  |
      | hardware | {level: "1", sizeGibibytes: 9000}                                   | no 2 free physical disks are large enough for 9000 GiB        |
      | hardware | {level: "1", controller: "1", physicalDisks: [Disk.0, Disk.99]}     | controller 1 has no physical disk Disk.99                     |
      | software | {level: "1", sizeGibibytes: 90000}                                  | on each of 12 disks                                           |
      | software | {level: "1", physicalDisks: [{serialNumber: x}, {serialNumber: y}]} | no disk matches the root device hints                         |

  # B-52 B-53
  Scenario: The controller is killed while volumes are created
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator sets hardware RAID:
      """
      - {level: "1", rotational: true}
      - {level: "5", rotational: false}
      """
    And preparing has begun
    And the controller is killed
    And another controller starts
    Then the host is prepared with the RAID
    And the server has the volumes "1, 5"

  # B-10 B-52 B-206 B-212
  @sample-1
  Scenario Outline: The controller is killed and the BMC restarts while RAID, settings and firmware change: seed <seed>
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator sets RAID level 1, the settings "ProcCores=8" and the firmware "bios=2.4.0, nic:1=22.40.1" together
    And controllers are killed and the BMC restarts, 5 times, at points drawn from the seed <seed>
    Then the host has the RAID, the settings and the firmware
    And it was never available with only some of them

    Examples:
      | seed |
      | 1    |
      | 2    |
      | 3    |
      | 4    |

  # B-52 B-61 B-163 B-170 B-173
  Scenario: A server with software RAID boots from the remaining disk
    Given a lab with 1 server
    And the operator has registered the server
    When the operator sets software RAID:
      """
      - {level: "1"}
      """
    Then the host is prepared with the RAID
    When the operator sets the image
    Then the host becomes "provisioned"
    And all disks hold the image at the data offset of md
    And the server runs from its first disk
    And the host has no root device hints
    When the first disk is pulled
    And the server is power-cycled
    Then the server runs from its second disk
    When the first disk is reinserted
    And the operator removes the image
    Then the host becomes "deprovisioning"
    And the host is prepared with the RAID
    And it passed through "deprovisioning, available, preparing, available"
    When the operator deletes the host
    Then the host is deleted

  # B-170
  Scenario: Software RAID that the host was not prepared with is deleted
    Given a lab with 1 server
    And the operator has registered the server
    When the operator sets software RAID:
      """
      - {level: "1"}
      """
    Then the host is prepared with the RAID
    And the server's disks hold software RAID
    When the operator annotates the host with "baremetalhost.metal3.io/detached"
    And the operator deletes the host
    Then the host is deleted
    And the Secret is deleted
    And the server's disks hold software RAID
    When the operator registers the server again with:
      """
      spec: {automatedCleaningMode: disabled}
      """
    Then the host becomes "available"
    And it passed through "inspecting, match profile, preparing, available"
    And the server's disks hold no software RAID
    And the host reports no error

  # B-170
  Scenario: Software RAID is deleted even with cleaning disabled
    Given a lab with 1 server
    And the operator has registered the server
    When the operator disables cleaning
    And the operator sets software RAID:
      """
      - {level: "1", sizeGibibytes: 20}
      - {level: "0"}
      """
    Then the host is prepared with the RAID
    When the operator sets the image
    Then the host becomes "provisioned"
    When the operator removes the software RAID
    And the operator removes the image
    Then the host becomes "available"
    And the server's disks have no partition table
