"""Names and ports of file systems and databases in templates."""

FILE_SYSTEM, ASSOCIATION = "AWS::FSx::FileSystem", "AWS::FSx::DataRepositoryAssociation"
